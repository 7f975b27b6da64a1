"""Graphs that follow from the number of workers, or are listed."""

from collections.abc import Iterable
from math import isqrt
from typing import Annotated, Any, Literal

from pydantic import Field

from ....parts.base import LocatedError
from .base import Count, Edge, Undirected


class Ring(Undirected):
    """Each worker with the one before and the one after it."""

    kind: Literal["ring"] = "ring"

    def make(self, n: int, numbers: Any = None) -> Iterable[Edge]:
        return ((k, (k + 1) % n) for k in range(n))


class Torus(Undirected):
    """A grid that is closed in both directions: four neighbours each."""

    kind: Literal["torus"] = "torus"
    rows: Count | None = None
    """Rows of the grid; by default as many as make it the most square."""

    def make(self, n: int, numbers: Any = None) -> Iterable[Edge]:
        rows = self.rows
        if rows is None:
            rows = next(r for r in range(isqrt(n), 0, -1) if n % r == 0)
        if n % rows or not 2 <= rows <= n // 2:
            raise LocatedError(
                f"protocol.graph must have rows of equal length, at least 2 by 2, for "
                f"a torus of {n} workers, got {rows} rows; change rows or the number "
                f"of workers, or take a ring",
            )
        columns = n // rows
        right = {(k, k - k % columns + (k + 1) % columns) for k in range(n)}
        return right | {(k, (k + columns) % n) for k in range(n)}


class Complete(Undirected):
    """Each worker with every other one."""

    kind: Literal["complete"] = "complete"

    def num_pairs(self, n: int) -> int:
        return n * (n - 1) // 2

    def make(self, n: int, numbers: Any = None) -> Iterable[Edge]:
        return ((i, j) for i in range(n) for j in range(i))


class Bipartite(Undirected):
    """Every sender with every receiver: by turns, the first worker is a sender."""

    kind: Literal["bipartite"] = "bipartite"

    def num_pairs(self, n: int) -> int:
        return n * n // 4

    def make(self, n: int, numbers: Any = None) -> Iterable[Edge]:
        return ((i, j) for i in range(0, n, 2) for j in range(1, n, 2))


class Edges(Undirected):
    """The pairs that are listed."""

    kind: Literal["edges"] = "edges"
    edges: Annotated[tuple[tuple[Count, Count], ...], Field(min_length=1)]
    """Pairs of workers, numbered from 1."""

    def num_pairs(self, n: int) -> int:
        return len(self.edges)

    def make(self, n: int, numbers: Any = None) -> Iterable[Edge]:
        for i, j in sorted(self.edges):
            if i == j or max(i, j) > n:
                raise LocatedError(
                    f"protocol.graph.edges must be pairs of different workers from 1 "
                    f"to {n}, got [{i}, {j}]; change it",
                )
            yield i - 1, j - 1
