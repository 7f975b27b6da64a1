"""Mixing of all workers at once: receivers of each worker in a round, and weights.

Column j of a mixing matrix says how worker j's model is shared out: it sums to 1. In an
undirected graph the rows do, too (Metropolis weights), so that the mean model stays.
"""

from math import ceil, log2

import numpy as np
from jaxtyping import Float

from ...config.base import Config, LocatedError
from .graphs import (
    DIRECTED,
    Arcs,
    Draw,
    Exponential,
    build_edges,
    neighbours,
)

Phase = list[list[int]]
"""Receivers of each worker."""


def receivers(graph: Config, n: int, draw: Draw | None = None) -> list[Phase]:
    """Returns the receivers of each worker, in rounds that repeat in turn.

    Args:
        graph: Undirected or directed graph.
        n: Number of workers, >= 2.
        draw: Random numbers, for random graphs.

    Raises:
        LocatedError: the graph is impossible or not (strongly) connected.
    """
    match graph:
        case Exponential():
            hops = [2**phase for phase in range(max(1, ceil(log2(n))))]
            return [[[(k + hop) % n] for k in range(n)] for hop in hops]
        case Arcs(arcs=arcs):
            found: Phase = [[] for _ in range(n)]
            for sender, receiver in sorted({*arcs}):
                _check_arc(sender, receiver, n)
                found[sender - 1].append(receiver - 1)
            _check_strongly_connected(found)
            return [found]
        case _:
            return [neighbours(build_edges(graph, n, draw), n)]


def mixing_matrices(
    graph: Config, n: int, draw: Draw | None = None, *, pushes: bool
) -> Float[np.ndarray, "Q n n"]:
    """Returns by which weights models are mixed, in rounds that repeat in turn.

    Args:
        graph: Undirected graph; with `pushes` directed or undirected.
        n: Number of workers.
        draw: Random numbers, for random graphs.
        pushes: Whether senders share in equal parts, with themselves (push-sum), in
            place of Metropolis weights.

    Source: Xiao and Boyd, Fast linear iterations for distributed averaging (2004),
        section 4.2 (Metropolis: Xiao, Boyd and Lall, 2005); Assran, Loizou, Ballas and
        Rabbat, Stochastic Gradient Push (2019), section 3.
    """
    matrices = []
    for phase in receivers(graph, n, draw):
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


def is_directed(graph: Config) -> bool:
    """Says whether models go one way only along a graph's edges."""
    return isinstance(graph, DIRECTED)


def _check_arc(sender: int, receiver: int, n: int) -> None:
    if sender == receiver or max(sender, receiver) > n:
        raise LocatedError(
            f"protocol.graph.arcs must be pairs of different workers from 1 to {n}, "
            f"got [{sender}, {receiver}]; change it",
            ("protocol", "graph", "arcs"),
        )


def _check_strongly_connected(receivers: Phase) -> None:
    reversed_: Phase = [[] for _ in receivers]
    for sender, others in enumerate(receivers):
        for other in others:
            reversed_[other].append(sender)
    for around in (receivers, reversed_):
        reached, todo = {0}, [0]
        while todo:
            new = set(around[todo.pop()]) - reached
            reached |= new
            todo += new
        if len(reached) < len(receivers):
            raise LocatedError(
                "protocol.graph must be strongly connected, or some workers never hear "
                "of others; add arcs",
                ("protocol", "graph"),
            )
