"""Graphs: of the number of workers, listed, drawn by the seed, or directed."""

from collections.abc import Iterable
from math import ceil, isqrt, log, log2
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from ....parts.base import LocatedError
from ....world.protocol_abilities import Draw
from .base import Count, Directed, Edge, Numbers, Phase, Undirected, all_reached


class Ring(Undirected):
    """Each worker with the one before and the one after it."""

    kind: Literal["ring"] = "ring"

    def make(self, n: int, numbers: Numbers = None) -> Iterable[Edge]:
        return ((k, (k + 1) % n) for k in range(n))


class Torus(Undirected):
    """A grid that is closed in both directions: four neighbours each."""

    kind: Literal["torus"] = "torus"
    rows: Count | None = None
    """Rows of the grid; by default as many as make it the most square."""

    def make(self, n: int, numbers: Numbers = None) -> Iterable[Edge]:
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

    def make(self, n: int, numbers: Numbers = None) -> Iterable[Edge]:
        return ((i, j) for i in range(n) for j in range(i))


class Bipartite(Undirected):
    """Every sender with every receiver: by turns, the first worker is a sender."""

    kind: Literal["bipartite"] = "bipartite"

    def num_pairs(self, n: int) -> int:
        return n * n // 4

    def make(self, n: int, numbers: Numbers = None) -> Iterable[Edge]:
        return ((i, j) for i in range(0, n, 2) for j in range(1, n, 2))


class UndirectedExponential(Undirected):
    """Each worker with those 1, 2, 4, ... places before and after it, in every round.

    Source: Ying et al., Exponential Graph is Provably Efficient for Decentralized Deep
    Training (2021): the static exponential graph, in both directions.
    """

    kind: Literal["undirected_exponential"] = "undirected_exponential"

    def num_pairs(self, n: int) -> int:
        return n * n.bit_length()

    def make(self, n: int, numbers: Numbers = None) -> Iterable[Edge]:
        hops = [2**power for power in range((n - 1).bit_length())]
        return ((k, (k + hop) % n) for k in range(n) for hop in hops)


class Edges(Undirected):
    """The pairs that are listed."""

    kind: Literal["edges"] = "edges"
    edges: Annotated[tuple[tuple[Count, Count], ...], Field(min_length=1)]
    """Pairs of workers, numbered from 1."""

    def num_pairs(self, n: int) -> int:
        return len(self.edges)

    def make(self, n: int, numbers: Numbers = None) -> Iterable[Edge]:
        for i, j in sorted(self.edges):
            if i == j or max(i, j) > n:
                raise LocatedError(
                    f"protocol.graph.edges must be pairs of different workers from 1 "
                    f"to {n}, got [{i}, {j}]; change it",
                )
            yield i - 1, j - 1


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

    def make(self, n: int, numbers: Numbers = None) -> Iterable[Edge] | None:
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

    def make(self, n: int, numbers: Numbers = None) -> Iterable[Edge]:
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


class Exponential(Directed):
    """Directed: each sends to one other, 1, 2, 4, ... places on in successive rounds.

    Source: Assran et al., Stochastic Gradient Push (2019), appendix A.
    """

    kind: Literal["exponential"] = "exponential"

    def num_pairs(self, n: int) -> int:
        return n * n.bit_length()

    def receivers(self, n: int, draw: Draw | None = None) -> list[Phase]:
        hops = [2**phase for phase in range(max(1, ceil(log2(n))))]
        return [[[(k + hop) % n] for k in range(n)] for hop in hops]


class Arcs(Directed):
    """Directed: the senders and receivers that are listed."""

    kind: Literal["arcs"] = "arcs"
    arcs: Annotated[tuple[tuple[Count, Count], ...], Field(min_length=1)]
    """Pairs of a sender and a receiver, numbered from 1."""

    def num_pairs(self, n: int) -> int:
        return len(self.arcs)

    def receivers(self, n: int, draw: Draw | None = None) -> list[Phase]:
        found: Phase = [[] for _ in range(n)]
        senders: Phase = [[] for _ in range(n)]
        for sender, receiver in sorted({*self.arcs}):
            if sender == receiver or max(sender, receiver) > n:
                raise LocatedError(
                    f"protocol.graph.arcs must be pairs of different workers from 1 to "
                    f"{n}, got [{sender}, {receiver}]; change it",
                )
            found[sender - 1].append(receiver - 1)
            senders[receiver - 1].append(sender - 1)
        if not (all_reached(found) and all_reached(senders)):
            raise LocatedError(
                "protocol.graph must be strongly connected, or some workers never hear "
                "of others; add arcs",
            )
        return [found]
