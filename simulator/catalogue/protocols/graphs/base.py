"""The interface of every graph of workers: its pairs, rounds and weights.

Column j of a mixing matrix is the distribution of worker j's model: it sums to 1. In an
undirected graph the rows do, too (Metropolis weights), so that the mean model stays.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Float
from pydantic import Field

from ....parts.base import LocatedError, Part, tag
from ....parts.catalogue import AnyPart
from ....world.protocol_abilities import Draw

TRIES = 100
"""Random graphs that are drawn before giving up."""
MOST_PAIRS = 1_000_000
"""Pairs of workers of which a graph is made."""

Count = Annotated[int, Field(ge=1)]
Edge = tuple[int, int]
Numbers = np.random.Generator | None
"""Random numbers of a try to make a graph; none where nothing is drawn."""
Phase = list[list[int]]
"""Receivers of each worker."""


class Graph(Part):
    """A graph of workers: its options, which a scenario chooses by `kind`."""

    is_directed: ClassVar[bool] = False
    """Whether models go along its edges one way only."""

    @abstractmethod
    def receivers(self, n: int, draw: Draw | None = None) -> list[Phase]:
        """Returns the receivers of each worker, in rounds that repeat in turn.

        Args:
            n: Number of workers, >= 2.
            draw: Random numbers, for random graphs.

        Raises:
            LocatedError: The graph is impossible or not (strongly) connected.
        """

    def num_pairs(self, n: int) -> int:
        """Returns the number of pairs of `n` workers that the graph examines."""
        return 2 * n

    def check(self, n: int, *, must_have_sides: bool) -> None:
        """Refuses a graph that does not fit `n` workers, as far as no draw decides it.

        Args:
            n: Number of workers.
            must_have_sides: Whether it must have senders and receivers.

        Raises:
            LocatedError: Saying what and what to do.
        """
        if n < 2:
            raise LocatedError(
                f"protocol.graph must have at least 2 workers, got {n}; add clients",
                ("protocol",),
            )
        number = self.num_pairs(n)
        if number > MOST_PAIRS:
            raise LocatedError(
                f"protocol.graph must be made of at most {MOST_PAIRS:,} pairs of "
                f"workers, got {tag(type(self))!r} of {n:,} workers with {number:,}; "
                f"take a sparser graph, or fewer clients",
            )

    def mixing(
        self, n: int, draw: Draw | None = None, *, pushes: bool
    ) -> Float[np.ndarray, "Q n n"]:
        """Returns the mixing weights of models, in rounds that repeat in turn.

        Args:
            n: Number of workers.
            draw: Random numbers, for random graphs.
            pushes: Whether senders share in equal parts, with themselves (push-sum), in
                place of Metropolis weights, which only undirected graphs have.

        Source: Xiao and Boyd, Fast linear iterations for distributed averaging (2004),
            section 4.2 (Metropolis: Xiao, Boyd and Lall, 2005); Assran, Loizou, Ballas
            and Rabbat, Stochastic Gradient Push (2019), section 3.
        """
        matrices = []
        for phase in self.receivers(n, draw):
            matrix = np.zeros((n, n))
            degree = [len(others) for others in phase]
            for sender, others in enumerate(phase):
                for receiver in others:
                    largest = max(degree[sender], degree[receiver])
                    share = degree[sender] if pushes else largest
                    matrix[receiver, sender] = 1 / (1 + share)
                matrix[sender, sender] = 1 - matrix[:, sender].sum()
            matrices.append(matrix)
        return np.stack(matrices)


AnyGraph = Annotated[Graph, AnyPart("graphs")]
"""Any graph, of this package or of plug-ins."""


class Undirected(Graph):
    """A graph of pairs that may average."""

    is_random: ClassVar[bool] = False
    """Whether `make` draws it; it is drawn again until it is connected."""

    @abstractmethod
    def make(self, n: int, numbers: Numbers = None) -> Iterable[Edge] | None:
        """Returns its pairs, numbered from 0, in any order.

        Args:
            n: Number of workers, >= 2.
            numbers: Random numbers of this try, for a random graph.

        Returns:
            The pairs; None after a draw without success.

        Raises:
            LocatedError: The graph is impossible.
        """

    def remedy(self, n: int) -> str:
        """Returns the error for draws with `n` workers that are rarely connected."""
        return "number of edges"

    def edges_of(self, n: int, draw: Draw | None = None) -> list[Edge]:
        """Returns the edges of the connected graph, each once, as sorted pairs from 0.

        Args:
            n: Number of workers, >= 2.
            draw: Random numbers, for random graphs.

        Raises:
            LocatedError: The graph is impossible, or not connected.
        """
        if self.is_random and draw is None:
            raise TypeError("a random graph needs random numbers")
        for number in range(TRIES if self.is_random else 1):
            found = self.make(n, draw(number) if self.is_random and draw else None)
            edges = sorted({(min(edge), max(edge)) for edge in found or ()})
            if found is not None and all_reached(neighbours(edges, n)):
                return edges
        unconnected = (
            "or some workers never hear of the others; add edges between its parts"
        )
        if self.is_random:
            unconnected = (
                f"but {TRIES} random graphs of {n} workers were not; raise its "
                f"{self.remedy(n)}"
            )
        raise LocatedError(
            f"protocol.graph must be connected, {unconnected}", ("protocol", "graph")
        )

    def receivers(self, n: int, draw: Draw | None = None) -> list[Phase]:
        return [neighbours(self.edges_of(n, draw), n)]

    def check(self, n: int, *, must_have_sides: bool) -> None:
        super().check(n, must_have_sides=must_have_sides)
        if not self.is_random:
            edges = self.edges_of(n)
            if must_have_sides and find_senders(neighbours(edges, n)) is None:
                raise no_sides()


class Directed(Graph):
    """A graph along whose edges models go one way only."""

    is_directed: ClassVar[bool] = True

    def check(self, n: int, *, must_have_sides: bool) -> None:
        super().check(n, must_have_sides=must_have_sides)
        self.receivers(n)


def no_sides() -> LocatedError:
    """Returns the error of a graph that should have senders and receivers."""
    return LocatedError(
        "protocol.initiator must be 'every' for a graph with a cycle of odd length, "
        "which has no senders and receivers; change it, or take another graph",
    )


def neighbours(edges: list[Edge], n: int) -> list[list[int]]:
    """Returns each worker's neighbours, in order."""
    found: list[list[int]] = [[] for _ in range(n)]
    for i, j in edges:
        found[i].append(j)
        found[j].append(i)
    return [sorted(mine) for mine in found]


def find_senders(around: Phase) -> set[int] | None:
    """Returns worker 0's side of a connected graph; None where it has no two sides."""
    side = {0: True}
    todo = deque([0])
    while todo:
        worker = todo.popleft()
        for other in around[worker]:
            if other not in side:
                side[other] = not side[worker]
                todo.append(other)
            elif side[other] == side[worker]:
                return None
    return {worker for worker, sends in side.items() if sends}


def all_reached(around: Phase) -> bool:
    """Returns whether every worker is reached from the first, by way of neighbours."""
    reached, todo = {0}, [0]
    while todo:
        new = set(around[todo.pop()]) - reached
        reached |= new
        todo += new
    return len(reached) == len(around)
