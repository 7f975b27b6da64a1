"""Clients of equal size, each with a mixture of classes from a Dirichlet law."""

from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float64, Int64
from pydantic import Field

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


class DirichletClients(Horizontal):
    """Every client draws a mixture of classes, and its samples' classes from it.

    Clients are of equal size, to one row. Client m draws q_m ~ Dir(alpha p), where p
    are the shares of the classes in the training rows, and then the class of each of
    its rows from q_m. Rows are not replaced: a class that has run out is left out of
    all mixtures, so that the last clients hold what others left. `dirichlet` has the
    other scheme, proportions of every class over clients.

    Source: Hsu, Qi and Brown, Measuring the Effects of Non-Identical Data Distribution
    for Federated Visual Classification (2019), section 3.
    """

    kind: Literal["dirichlet_clients"] = "dirichlet_clients"
    alpha: Annotated[float, Field(gt=0, le=1e9)]
    """Concentration, of all classes together: near 0 a client has one class, with large
    values the mixture of all rows. Code that draws from Dir(a, ..., a) has, of C
    classes of equal size, an alpha of a C."""

    def make(self, dataset: Dataset, seed: int) -> Shares:
        """Returns shares of equal size with mixtures of classes of their own.

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
