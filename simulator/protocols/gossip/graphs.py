"""Graphs of workers: the pairs that may average."""

from collections import deque
from collections.abc import Callable
from math import isqrt, log
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from ...config.base import Config, LocatedError

TRIES = 100
"""Random graphs that are drawn before giving up."""
MOST_WORKERS = 100_000
"""Workers of gossip, each with a model of its own."""
MOST_MIXED = 2_000
"""Workers that average all at once, by a matrix of all with all: 32 MB."""
MOST_PAIRS = 1_000_000
"""Pairs of workers of which a graph is made."""
SHUFFLES = 20
"""Shuffles without success of a random regular graph's loose ends before a new
start."""

Count = Annotated[int, Field(ge=1)]
Edge = tuple[int, int]
Draw = Callable[[int], np.random.Generator]
"""The random numbers of the n-th try."""


class Ring(Config):
    """Each worker with the one before and the one after it."""

    kind: Literal["ring"] = "ring"


class Torus(Config):
    """A grid that is closed in both directions: four neighbours each."""

    kind: Literal["torus"] = "torus"
    rows: Count | None = None
    """Rows of the grid; by default as many as make it the most square."""


class Complete(Config):
    """Each worker with every other one."""

    kind: Literal["complete"] = "complete"


class Bipartite(Config):
    """Every sender with every receiver: by turns, the first worker is a sender."""

    kind: Literal["bipartite"] = "bipartite"


class RandomRegular(Config):
    """A random graph in which all have equally many neighbours."""

    kind: Literal["random_regular"] = "random_regular"
    degree: Count
    """Neighbours of each worker."""


class ErdosRenyi(Config):
    """Each pair of workers with the same chance, independently; drawn until connected.

    Source: Gilbert, Random graphs (1959).
    """

    kind: Literal["erdos_renyi"] = "erdos_renyi"
    probability: Annotated[float, Field(gt=0, le=1)]
    """Chance of each edge, each on its own."""


class Edges(Config):
    """The pairs that are listed."""

    kind: Literal["edges"] = "edges"
    edges: Annotated[tuple[tuple[Count, Count], ...], Field(min_length=1)]
    """Pairs of workers, numbered from 1."""


class Exponential(Config):
    """Directed: each sends to one other, 1, 2, 4, ... places on in successive rounds.

    Source: Assran et al., Stochastic Gradient Push (2019), appendix A.
    """

    kind: Literal["exponential"] = "exponential"


class Arcs(Config):
    """Directed: the senders and receivers that are listed."""

    kind: Literal["arcs"] = "arcs"
    arcs: Annotated[tuple[tuple[Count, Count], ...], Field(min_length=1)]
    """Pairs of a sender and a receiver, numbered from 1."""


DIRECTED = (Exponential, Arcs)
"""Graphs along whose edges models go one way only."""
Graph = Annotated[
    Ring
    | Torus
    | Complete
    | Bipartite
    | RandomRegular
    | ErdosRenyi
    | Edges
    | Exponential
    | Arcs,
    Field(discriminator="kind"),
]


def check_graph(graph: Config, num_workers: int, *, must_have_sides: bool) -> None:
    """Refuses a graph that does not fit its workers, as far as no draw decides it.

    Raises:
        LocatedError: saying what and what to do.
    """
    if num_workers < 2:
        raise LocatedError(
            f"protocol gossip must have at least 2 workers, got {num_workers}; add "
            f"clients",
            ("protocol",),
        )
    number, kind = num_pairs(graph, num_workers), getattr(graph, "kind", "")
    if number > MOST_PAIRS:
        raise LocatedError(
            f"protocol.graph must be made of at most {MOST_PAIRS:,} pairs of workers, "
            f"got {kind!r} of {num_workers:,} workers with {number:,}; take a sparser "
            f"graph, or fewer clients",
            ("protocol", "graph"),
        )
    if isinstance(graph, RandomRegular):
        _check_degree(graph.degree, num_workers)
    elif isinstance(graph, DIRECTED):
        return  # checked where it is built
    elif not isinstance(graph, ErdosRenyi):
        edges = build_edges(graph, num_workers)
        if must_have_sides and find_senders(edges, num_workers) is None:
            raise no_sides()


def check_size(num_workers: int, *, mixed: bool) -> None:
    """Refuses more workers than can have models of their own.

    Args:
        num_workers: K.
        mixed: Whether all of them average at once.

    Raises:
        LocatedError: saying how many there may be.
    """
    most = MOST_MIXED if mixed else MOST_WORKERS
    if num_workers > most:
        how = "average all at once" if mixed else "average in pairs"
        raise LocatedError(
            f"protocol gossip must have at most {most:,} workers that {how}, got "
            f"{num_workers:,}; take fewer clients",
            ("protocol",),
        )


def num_pairs(graph: Config, n: int) -> int:
    """Returns how many pairs of workers are looked at to make a graph."""
    match graph:
        case Complete() | ErdosRenyi():
            return n * (n - 1) // 2
        case Bipartite():
            return n * n // 4
        case RandomRegular(degree=degree):
            dense = 2 * degree > n - 1
            return n * (n - 1) // 2 if dense else n * degree // 2
        case Edges(edges=listed) | Arcs(arcs=listed):
            return len(listed)
        case Exponential():
            return n * n.bit_length()
    return 2 * n


def no_sides() -> LocatedError:
    """Returns the error of a graph that should have senders and receivers."""
    return LocatedError(
        "protocol.initiator must be 'every' for a graph with a cycle of odd length, "
        "which has no senders and receivers; change it, or take another graph",
        ("protocol", "initiator"),
    )


def build_edges(graph: Config, n: int, draw: Draw | None = None) -> list[Edge]:
    """Returns the edges of a connected graph, each once, as sorted pairs from 0.

    Args:
        graph: One of the classes above.
        n: Workers, >= 2.
        draw: Random numbers, for random graphs.

    Raises:
        LocatedError: the graph is impossible, or not connected.
    """
    match graph:
        case Ring():
            found = {(k, (k + 1) % n) for k in range(n)}
        case Torus(rows=rows):
            found = _torus(n, rows)
        case Complete():
            found = {(i, j) for i in range(n) for j in range(i)}
        case Bipartite():
            found = {(i, j) for i in range(0, n, 2) for j in range(1, n, 2)}
        case Edges(edges=edges):
            found = {(i - 1, j - 1) for i, j in edges}
            _check_listed(found, n)
        # A random graph that is not connected is drawn again, not refused.
        case RandomRegular(degree=degree):
            _check_degree(degree, n)
            return _drawn_until_connected(
                lambda numbers: _regular(n, degree, numbers), draw, n, "degree"
            )
        case ErdosRenyi(probability=probability):
            return _drawn_until_connected(
                lambda numbers: _each_pair(n, probability, numbers),
                draw,
                n,
                f"probability (above log(K) / K = {log(n) / n:.2g})",
            )
        case _:
            raise LookupError(f"{type(graph).__name__} is no graph")
    edges = sorted({(min(edge), max(edge)) for edge in found})
    if not _is_connected(edges, n):
        raise LocatedError(
            "protocol.graph must be connected, or some workers never hear of the "
            "others; add edges between its parts",
            ("protocol", "graph"),
        )
    return edges


def neighbours(edges: list[Edge], n: int) -> list[list[int]]:
    """Returns each worker's neighbours, in order."""
    found: list[list[int]] = [[] for _ in range(n)]
    for i, j in edges:
        found[i].append(j)
        found[j].append(i)
    return [sorted(mine) for mine in found]


def find_senders(edges: list[Edge], n: int) -> set[int] | None:
    """Returns worker 0's side of a connected graph; None where it has no two sides."""
    side = {0: True}
    around = neighbours(edges, n)
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


def _is_connected(edges: list[Edge], n: int) -> bool:
    around = neighbours(edges, n)
    reached, todo = {0}, [0]
    while todo:
        new = set(around[todo.pop()]) - reached
        reached |= new
        todo += new
    return len(reached) == n


def _torus(n: int, rows: int | None) -> set[Edge]:
    if rows is None:
        rows = next(r for r in range(isqrt(n), 0, -1) if n % r == 0)
    if n % rows or not 2 <= rows <= n // 2:
        raise LocatedError(
            f"protocol.graph must have rows of equal length, at least 2 by 2, for a "
            f"torus of {n} workers, got {rows} rows; change rows or the number of "
            f"workers, or take a ring",
            ("protocol", "graph"),
        )
    columns = n // rows
    right = {(k, k - k % columns + (k + 1) % columns) for k in range(n)}
    return right | {(k, (k + columns) % n) for k in range(n)}


def _check_listed(edges: set[Edge], n: int) -> None:
    for i, j in sorted(edges):
        if i == j or max(i, j) >= n:
            raise LocatedError(
                f"protocol.graph.edges must be pairs of different workers from 1 to "
                f"{n}, got [{i + 1}, {j + 1}]; change it",
                ("protocol", "graph", "edges"),
            )


def _check_degree(degree: int, n: int) -> None:
    if degree >= n or degree * n % 2 or (degree == 1 and n > 2):
        raise LocatedError(
            f"protocol.graph.degree must be from 2 to {n - 1}, and even where the "
            f"number of workers ({n}) is odd, got {degree}; change it",
            ("protocol", "graph", "degree"),
        )


def _drawn_until_connected(
    one: Callable[[np.random.Generator], list[Edge] | None],
    draw: Draw | None,
    n: int,
    remedy: str,
) -> list[Edge]:
    if draw is None:
        raise TypeError("a random graph needs random numbers")
    for number in range(TRIES):
        edges = one(draw(number))
        if edges is not None and _is_connected(edges, n):
            return edges
    raise LocatedError(
        f"protocol.graph must be connected, but {TRIES} random graphs of {n} workers "
        f"were not; raise its {remedy}",
        ("protocol", "graph"),
    )


def _each_pair(n: int, probability: float, numbers: np.random.Generator) -> list[Edge]:
    low, high = np.triu_indices(n, 1)
    kept = numbers.random(low.size) < probability
    return list(zip(low[kept].tolist(), high[kept].tolist(), strict=True))


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
