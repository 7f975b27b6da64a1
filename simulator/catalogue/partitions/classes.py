"""Rows by their classes: a few a client, or in proportions of a Dirichlet law."""

from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float, Float64, Int, Int64
from pydantic import Field

from ...parts.errors import ScenarioError
from ...problem.data.base import Dataset
from ...problem.partition import (
    DEAL,
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
"""Number of draws of the proportions before the search for `least` ends."""


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


class Dirichlet(Horizontal):
    """The samples of each class are shared in proportions drawn from a Dirichlet law.

    Of every class k a proportion p_k, m goes to client m, with p_k ~ Dir(alpha, ...,
    alpha), independently: both the sizes and the mixtures of clients differ. This is
    the scheme of Yurochkin et al. Hsu, Qi and Brown have another scheme, which is
    `dirichlet_clients`: clients of equal size draw mixtures of classes.

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


class DirichletClients(Horizontal):
    """Every client draws a mixture of classes, and its samples' classes from it.

    Clients are of equal size, to one row. Client m draws q_m ~ Dir(alpha p), where p
    are the shares of the classes in the training rows, and then the class of each of
    its rows from q_m. Rows are not replaced: a class that has run out is left out of
    all mixtures, so that the last clients hold the remaining classes. `dirichlet` has
    the other scheme, proportions of every class over clients.

    Source: Hsu, Qi and Brown, Measuring the Effects of Non-Identical Data Distribution
    for Federated Visual Classification (2019), section 3.
    """

    kind: Literal["dirichlet_clients"] = "dirichlet_clients"
    alpha: Annotated[float, Field(gt=0, le=1e9)]
    """Concentration, of all classes together: near 0 a client has one class, with large
    values the mixture of all rows. Code that draws from Dir(a, ..., a) has, of C
    classes of equal size, an alpha of a C."""

    def make(self, dataset: Dataset, seed: int) -> Shares:
        """Returns shares of equal size, each with its own mixture of classes.

        The first clients have a row more where rows cannot be divided evenly. Where a
        client's mixture has nothing left, it draws from p.
        """
        refuse_all_but_classes(self.kind, dataset)
        refuse_too_many(self, dataset)
        left = np.bincount(dataset.y_train, minlength=dataset.num_classes)
        num_rows = len(dataset.y_train)
        held, shares = left > 0, left / num_rows
        draw = draws(seed, PROPORTIONS)
        taken = np.zeros((self.clients, left.size), np.int64)
        for client, counts in enumerate(taken):
            size = num_rows // self.clients + (client < num_rows % self.clients)
            mixture = np.zeros(left.size)
            mixture[held] = draw.dirichlet(self.alpha * shares[held])
            counts[:] = _counts(mixture, shares, left, draw.random(size))
            left = left - counts
        # Rows sorted by class: of each class first those of the first client.
        client = np.repeat(np.tile(np.arange(self.clients), left.size), taken.T.ravel())
        return grouped(by_class(dataset, seed), client, self.clients)


def _counts(
    mixture: Float64[np.ndarray, " C"],
    shares: Float64[np.ndarray, " C"],
    left: Int64[np.ndarray, " C"],
    uniform: Float64[np.ndarray, " n"],
) -> Int64[np.ndarray, " C"]:
    """Returns how many rows of each class a client draws, one after the other.

    Args:
        mixture: Chance of each class, as long as none has run out.
        shares: Chance of each class where none of the mixture's is left.
        left: Rows of each class that no other client has.
        uniform: A number in [0, 1) for each of the client's rows.
    """
    counts = np.zeros_like(left)
    while uniform.size:
        still = left - counts
        chance = np.where(still > 0, mixture, 0.0)
        if not chance.any():
            chance = np.where(still > 0, shares, 0.0)
        ends = np.cumsum(chance)
        drawn = np.searchsorted(ends, uniform * ends[-1], side="right")
        # A product that is rounded up is the last class's that has a chance.
        drawn = np.minimum(drawn, np.flatnonzero(chance)[-1])
        so_far = np.cumsum(drawn[:, None] == np.arange(left.size), axis=0)
        # Chances hold until the first draw that takes the last row of a class.
        out = np.flatnonzero((so_far == still)[np.arange(drawn.size), drawn])
        num = out[0] + 1 if out.size else drawn.size
        counts += so_far[num - 1]
        uniform = uniform[num:]
    return counts
