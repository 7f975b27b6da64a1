"""A slow twin of hierarchical averaging: branch after branch, without events.

What happens below an edge depends on nothing but the models that it gets, so each
branch is played on its own; an edge that does not wait is a queue of its branches.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Draw = Callable[[int, int], float]
"""Seconds of the n-th draw of a client or an edge."""
Came = tuple[float, Vector, int]
"""When a model is above, the model, and the version that its last client had read."""
Train = Callable[[int, int, Vector], Vector]
"""What a client makes of a model in its n-th job."""


def successive(draw: Callable[[int], float]) -> Draw:
    """Returns the n-th draw of each of many, from one that draws the next."""
    drawn: dict[int, list[float]] = defaultdict(list)

    def nth(who: int, number: int) -> float:
        while len(drawn[who]) <= number:
            drawn[who].append(float(draw(who)))
        return drawn[who][number]

    return nth


class Visit(NamedTuple):
    """The cloud after a merge: its time, its model, and the version it was based on."""

    time_s: float
    cloud: Vector
    based_on: int


@dataclass
class Leaf:
    """An edge of clients.

    Attributes:
        number: Its number in draws of the way to the one above.
        clients: Its clients.
        rounds: Rounds between visits above.
        seconds: Times of their jobs.
        trained: What they make of a model.
        up_s: Seconds to the one above.
        down_s: Seconds back.
    """

    number: int
    clients: Sequence[int]
    rounds: int
    seconds: Draw
    trained: Train
    up_s: Draw
    down_s: Draw
    trips: int = 0
    jobs: dict[int, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.clients)

    def visit(self, at: float, model: Vector, version: int) -> Came:
        """Goes on with a model of a version from a time on, to the next one above."""
        for _ in range(self.rounds):
            models, ends = [], []
            for client in self.clients:
                job = self.jobs.get(client, 0)
                self.jobs[client] = job + 1
                ends.append(at + self.seconds(client, job))
                models.append(self.trained(client, job, model))
            at, model = max(ends), np.mean(models, axis=0)
        return at + self.up_s(self.number, self.trips), model, version


@dataclass
class Branch:
    """An edge of edges, or the cloud, whose `rounds` are all that are asked for.

    Attributes:
        mixing: Part of a model from below; None waits for all.
        below: What is under it.
    """

    number: int
    rounds: int
    mixing: float | None
    below: list["Leaf | Branch"]
    up_s: Draw
    down_s: Draw
    trips: int = 0
    coming: list[tuple[float, int, Vector, int]] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    merges: list[Visit] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(node.size for node in self.below)

    def _send(self, at: float, model: Vector, version: int, *, first: bool) -> None:
        """Lets those that have asked go on with a model."""
        for k in self.asked:
            node, begin = self.below[k], at
            if not first:
                begin += node.down_s(node.number, node.trips)
                node.trips += 1
            there, theirs, read = node.visit(begin, model, version)
            heapq.heappush(self.coming, (there, k, theirs, read))
        self.asked = []

    def visit(
        self, at: float, model: Vector, version: int, *, is_cloud: bool = False
    ) -> Came:
        """Goes on with a model of a version from a time on, to the next one above."""
        first = not self.merges
        if first:
            self.asked = [*range(len(self.below))]
        self._send(at, model, version, first=first)
        read = version
        for made in range(self.rounds):
            if self.mixing is None:
                arrived = sorted(self.coming)
                self.coming = []
                model = sum(
                    (
                        self.below[k].size / self.size * theirs
                        for _, k, theirs, _ in arrived
                    ),
                    np.zeros_like(model),
                )
            else:
                arrived = [heapq.heappop(self.coming)]
                model = (1 - self.mixing) * model + self.mixing * arrived[0][2]
            at = max(at, arrived[-1][0])
            self.asked = [k for _, k, _, _ in arrived]
            read = arrived[-1][3]
            self.merges.append(Visit(at, model, read))
            if is_cloud:
                version = len(self.merges)
            if made + 1 < self.rounds:
                self._send(at, model, version, first=False)
        return at + self.up_s(self.number, self.trips), model, read


def play(cloud: Branch, start: Vector) -> list[Visit]:
    """Returns the cloud's merges."""
    cloud.visit(0.0, start, 0, is_cloud=True)
    return cloud.merges
