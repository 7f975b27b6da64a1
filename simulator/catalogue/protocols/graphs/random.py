"""Graphs that are drawn, with random numbers keyed by the run's seed."""

from collections.abc import Iterable
from math import log
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from ....parts.base import LocatedError
from .base import Count, Edge, Undirected

SHUFFLES = 20
"""Shuffles without success of a random regular graph's loose ends before a new
start."""


class RandomRegular(Undirected):
    """A random graph in which all have equally many neighbours."""

    kind: Literal["random_regular"] = "random_regular"
    is_random: ClassVar[bool] = True
    degree: Count
    """Neighbours of each worker."""

    def num_pairs(self, n: int) -> int:
        dense = 2 * self.degree > n - 1
        return n * (n - 1) // 2 if dense else n * self.degree // 2

    def check(self, n: int, *, must_have_sides: bool) -> None:
        super().check(n, must_have_sides=must_have_sides)
        degree = self.degree
        if degree >= n or degree * n % 2 or (degree == 1 and n > 2):
            raise LocatedError(
                f"protocol.graph.degree must be from 2 to {n - 1}, and even where the "
                f"number of workers ({n}) is odd, got {degree}; change it",
            )

    def make(
        self, n: int, numbers: np.random.Generator | None = None
    ) -> Iterable[Edge] | None:
        assert numbers is not None
        return _regular(n, self.degree, numbers)

    def remedy(self, n: int) -> str:
        return "degree"


class ErdosRenyi(Undirected):
    """Each pair of workers with the same chance, independently; drawn until connected.

    Source: Gilbert, Random graphs (1959).
    """

    kind: Literal["erdos_renyi"] = "erdos_renyi"
    is_random: ClassVar[bool] = True
    probability: Annotated[float, Field(gt=0, le=1)]
    """Chance of each edge, each on its own."""

    def num_pairs(self, n: int) -> int:
        return n * (n - 1) // 2

    def make(
        self, n: int, numbers: np.random.Generator | None = None
    ) -> Iterable[Edge]:
        assert numbers is not None
        low, high = np.triu_indices(n, 1)
        kept = numbers.random(low.size) < self.probability
        return zip(low[kept].tolist(), high[kept].tolist(), strict=True)

    def remedy(self, n: int) -> str:
        return f"probability (above log(K) / K = {log(n) / n:.2g})"


def _regular(n: int, degree: int, numbers: np.random.Generator) -> list[Edge] | None:
    """Joins the loose ends of all workers at random; None where that came to nothing.

    Source: Steger and Wormald, Generating random regular graphs quickly (1999).
    """
    if 2 * degree > n - 1:  # what is left out is sparse, and quickly found
        out = set(_regular(n, n - 1 - degree, numbers) or ())
        if len(out) != n * (n - 1 - degree) // 2:
            return None
        return [(i, j) for i in range(n) for j in range(i + 1, n) if (i, j) not in out]
    found: set[Edge] = set()
    loose = np.repeat(np.arange(n), degree).tolist()
    vain = 0
    while loose and vain < SHUFFLES:
        left = []
        shuffled = numbers.permutation(loose).tolist()
        for i, j in zip(shuffled[::2], shuffled[1::2], strict=True):
            edge = (min(i, j), max(i, j))
            if i == j or edge in found:
                left += [i, j]
            else:
                found.add(edge)
        vain = vain + 1 if len(left) == len(loose) else 0
        loose = left
    return None if loose else sorted(found)
