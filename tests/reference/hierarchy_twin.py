"""A slow twin of hierarchical averaging: edge after edge, without events.

Edges meet at the cloud alone, so each one's rounds are played on their own.
"""

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Draw = Callable[[int, int], float]
"""Seconds of the n-th draw of a client or an edge."""


class Visit(NamedTuple):
    """The cloud after a merge: its time, its model, and the version it was based on."""

    time_s: float
    cloud: Vector
    based_on: int


class Edge:
    """One edge: its clients, its model, and how often each law was drawn."""

    def __init__(self, clients: Sequence[int], model: Vector) -> None:
        self.clients, self.model = clients, model
        self.jobs = dict.fromkeys(clients, 0)
        self.trips = 0
        self.version = 0

    def run(
        self,
        start_s: float,
        rounds: int,
        seconds: Draw,
        trained: Callable[[int, int, Vector], Vector],
    ) -> float:
        """Makes rounds from a time on; returns when the last one is over."""
        for _ in range(rounds):
            models, ends = [], []
            for client in self.clients:
                job = self.jobs[client]
                self.jobs[client] += 1
                ends.append(start_s + seconds(client, job))
                models.append(trained(client, job, self.model))
            start_s = max(ends)
            self.model = np.mean(models, axis=0)
        return start_s


def play(
    groups: Sequence[Sequence[int]],
    start: Vector,
    rounds: int,
    visits: int,
    seconds: Draw,
    up_s: Draw,
    down_s: Draw,
    trained: Callable[[int, int, Vector], Vector],
    mixing: float | None,
) -> list[Visit]:
    """Returns the cloud's merges; a cloud with `mixing` None waits for all edges."""
    edges = [Edge(group, start) for group in groups]
    cloud, found = start, []
    total = sum(map(len, groups))

    def coming(number: int, at: float) -> float:
        edge = edges[number]
        return edge.run(at, rounds, seconds, trained) + up_s(number, edge.trips)

    queue = [(coming(number, 0.0), number) for number in range(len(edges))]
    heapq.heapify(queue)
    while len(found) < visits:
        if mixing is None:
            at = max(time for time, _ in queue)
            there = [number for _, number in queue]
            cloud = sum(
                (len(edge.clients) / total * edge.model for edge in edges),
                np.zeros_like(start),
            )
            queue = []
        else:
            at, number = heapq.heappop(queue)
            there = [number]
            cloud = (1 - mixing) * cloud + mixing * edges[number].model
        found.append(Visit(at, cloud, edges[there[-1]].version))
        for number in there:
            edge = edges[number]
            edge.model, edge.version = cloud, len(found)
            begin = at + down_s(number, edge.trips)
            edge.trips += 1
            heapq.heappush(queue, (coming(number, begin), number))
    return found
