"""A few classes for each client: rows sorted by class, dealt in shards."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from ..config.errors import ScenarioError
from ..data.base import Dataset
from .parts import (
    DEAL,
    Horizontal,
    Shares,
    by_class,
    draws,
    refuse_all_but_classes,
)


class Labels(Horizontal):
    """Every client holds equally many samples of a few classes.

    Samples sorted by class are cut into `clients * classes_per_client` shards of equal
    size, of which each client is dealt `classes_per_client` at random.

    Source: McMahan, Moore, Ramage, Hampson and Agüera y Arcas, Communication-Efficient
    Learning of Deep Networks from Decentralized Data (2017), section 3.
    """

    kind: Literal["labels"] = "labels"
    classes_per_client: Annotated[int, Field(ge=1)]
    """Shards of one class each that a client is dealt."""

    def make(self, dataset: Dataset, seed: int) -> Shares:
        """Returns shares of a few classes each.

        Shards differ in size by at most one. Which rows of a class are in which of its
        shards is random. A shard across the border of two classes holds both, and a
        client may be dealt two shards of one class, so that clients hold
        `classes_per_client` classes or fewer where the sizes of the classes are
        multiples of the shards'.
        """
        refuse_all_but_classes(self.kind, dataset)
        each, num_rows = self.classes_per_client, len(dataset.y_train)
        if each > dataset.num_classes:
            raise ScenarioError(
                f"problem.partition.classes_per_client must be at most the "
                f"{dataset.num_classes} classes of {dataset.name}, got {each}; lower it"
            )
        num_shards = self.clients * each
        if num_shards > num_rows:
            raise ScenarioError(
                f"problem.partition.clients must be at most {num_rows // each}, so "
                f"that the {num_rows} training rows of {dataset.name} make {each} "
                f"shards for each, got {self.clients}; take fewer clients or classes "
                "per client"
            )
        shards = np.array_split(by_class(dataset, seed), num_shards)
        deal = draws(seed, DEAL).permutation(num_shards)
        hands = deal.reshape(self.clients, each)
        return [np.sort(np.concatenate([shards[s] for s in hand])) for hand in hands]
