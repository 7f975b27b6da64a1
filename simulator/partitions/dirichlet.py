"""Shares of every class in proportions drawn from a Dirichlet law."""

from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from ..config.errors import ScenarioError
from ..data.base import Dataset
from .parts import (
    PROPORTIONS,
    Horizontal,
    Shares,
    by_class,
    draws,
    grouped,
    refuse_all_but_classes,
    refuse_too_many,
)

ATTEMPTS = 1000
"""Number of draws of the proportions before `least` is given up."""


class Dirichlet(Horizontal):
    """The samples of each class are shared in proportions drawn from a Dirichlet law.

    Of every class k a proportion p_k, m goes to client m, with p_k ~ Dir(alpha, ...,
    alpha), independently: both the sizes and the mixtures of clients differ. This is
    the scheme of Yurochkin et al.; that of Hsu, Qi and Brown, who draw a mixture of
    classes for each of clients of equal size, is `dirichlet_clients`.

    Source: Yurochkin et al., Bayesian Nonparametric Federated Learning of Neural
    Networks (2019), section 4, heterogeneous partition.
    """

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: Annotated[float, Field(gt=0, le=1e9)]
    """Concentration: near 0 every class has one holder, large values share equally."""
    least: Annotated[int, Field(ge=1)] = 1
    """Samples that every client must hold; proportions are drawn again until it does,
    so that they follow the Dirichlet law given that."""

    def make(self, dataset: Dataset, seed: int) -> Shares:
        """Returns shares whose proportions of each class follow a Dirichlet law.

        A client's number of rows of a class is within one of its proportion of them.
        """
        refuse_all_but_classes(self.kind, dataset)
        refuse_too_many(self, dataset)
        num_rows = len(dataset.y_train)
        if self.clients * self.least > num_rows:
            raise ScenarioError(
                f"problem.partition.least must be at most {num_rows // self.clients}, "
                f"so that the {num_rows} training rows of {dataset.name} suffice for "
                f"{self.clients} clients, got {self.least}; lower it"
            )
        counts = np.bincount(dataset.y_train, minlength=dataset.num_classes)
        cuts = self._cuts(counts, dataset.name, seed)
        # Cut points within each class become cut points of all rows sorted by class.
        starts = (np.cumsum(counts) - counts)[:, None] + cuts
        client = np.repeat(
            np.tile(np.arange(self.clients), counts.size), np.diff(starts).ravel()
        )
        return grouped(by_class(dataset, seed), client, self.clients)

    def _cuts(
        self, counts: Int[np.ndarray, " C"], name: str, seed: int
    ) -> Int[np.ndarray, "C M_plus_1"]:
        """Returns the cuts of the rows of each class, from 0 to their number."""
        best = 0
        for attempt in range(ATTEMPTS):
            proportions: Float[np.ndarray, "C M"] = draws(
                seed, PROPORTIONS, attempt
            ).dirichlet(np.full(self.clients, self.alpha), size=counts.size)
            inner = np.cumsum(proportions, axis=1)[:, :-1]
            cuts = np.zeros((counts.size, self.clients + 1), np.int64)
            cuts[:, 1:-1] = np.rint(np.minimum(inner, 1) * counts[:, None])
            cuts[:, -1] = counts
            smallest = int(np.diff(cuts).sum(axis=0).min())
            if smallest >= self.least:
                return cuts
            best = max(best, smallest)
        raise ScenarioError(
            f"problem.partition.least must be a size that every client reaches in one "
            f"of {ATTEMPTS} draws for {name}, got {self.least} where at best the "
            f"smallest client had {best}; lower it, raise alpha, or take fewer clients"
        )
