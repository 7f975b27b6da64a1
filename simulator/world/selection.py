"""The next client, where fewer are in flight than there are; starts of open systems."""

from collections.abc import Callable

import numpy as np
import simpy

from ..config.errors import ScenarioError
from ..config.expressions import per_client
from ..laws.base import Population
from ..streams import Purpose, Streams
from .clients import OpenArrivals, Selection
from .power import Powers

BLOCK = 4096
"""Candidates that are drawn at once."""
TRIES = 1000
"""Candidates that are looked at before the whole population is."""


class Pool:
    """The clients who wait to be selected.

    Args:
        config: Number of clients in flight, and how they are chosen.
        num_clients: Number of clients.
        streams: Random streams of the run.
        prefetch: Told which clients will probably be chosen next.
        since: Function of a client and a time that returns when the client is there
            next; None where all clients are always there.
    """

    def __init__(
        self,
        config: Selection,
        num_clients: int,
        streams: Streams,
        prefetch: Callable[[np.ndarray], None],
        since: Callable[[int, float], float] | None,
    ) -> None:
        self._by, self._num_clients, self._streams = config.by, num_clients, streams
        self._prefetch, self._since = prefetch, since
        self._busy = bytearray(num_clients)
        self._candidates: list[int] = []
        self._drawn = 0
        self._edges: np.ndarray | None = None
        if config.by == "weighted":
            exact = per_client(config.weights, num_clients, "clients.selection.weights")
            weights = np.array([float(weight) for weight in exact])
            if not (weights >= 0).all() or not weights.any():
                raise ScenarioError(
                    "clients.selection.weights must be >= 0 and not all 0; change them"
                )
            self._edges = np.cumsum(weights) / weights.sum()

    def take(self, now: float) -> int | None:
        """Chooses a client who is not under way and is there; None if none is."""
        busy, since, client = self._busy, self._since, 0
        for _ in range(TRIES):
            if not self._candidates:
                self._draw()
            client = self._candidates.pop()
            if not busy[client] and (since is None or since(client, now) <= now):
                busy[client] = 1
                return client
        # Very few are there: the next one after the last candidate.
        start, n = client, self._num_clients
        others = ((start + step) % n for step in range(n))
        free = (c for c in others if not busy[c])
        found = next((c for c in free if since is None or since(c, now) <= now), None)
        if found is not None:
            busy[found] = 1
        return found

    def choose(self, number: int, now: float) -> list[int]:
        """Chooses some clients, or all who are there if these are fewer."""
        found: list[int] = []
        while len(found) < number and (client := self.take(now)) is not None:
            found.append(client)
        return found

    def ready(self, then: Callable[[int], None], argument: int) -> None:
        """Calls a function as soon as the next clients can be chosen: at once."""
        then(argument)

    def give_back(self, client: int) -> None:
        """Lets a client be chosen again."""
        self._busy[client] = 0

    def waiting(self) -> list[int]:
        """Returns the clients who are not under way."""
        return [c for c in range(self._num_clients) if not self._busy[c]]

    def free(self, now: float) -> list[int]:
        """Returns those of them who are there."""
        since = self._since
        return [c for c in self.waiting() if since is None or since(c, now) <= now]

    def hold(self, client: int) -> None:
        """Notes that a client is under way."""
        self._busy[client] = 1

    def _draw(self) -> None:
        n, first = self._num_clients, self._drawn
        self._drawn += BLOCK
        if self._by == "cyclic":
            drawn = np.arange(first, first + BLOCK) % n
        else:
            uniform = self._streams.uniforms(Purpose.SELECT, 0, first, BLOCK)
            if self._edges is None:
                drawn = (uniform * n).astype(np.int64)
            else:
                drawn = np.searchsorted(self._edges, uniform, side="right")
                drawn = np.minimum(drawn, n - 1)
        self._prefetch(drawn)
        self._candidates = drawn[::-1].tolist()


class Starts:
    """The virtual times between the starts of jobs, of all clients together.

    Args:
        config: Options of a selection.
        draw: Returns the next draw of the law of gaps, in the clock's unit.
        population: All clients.
        env: The clock.
    """

    def __init__(
        self,
        config: OpenArrivals,
        draw: Callable[[int], int | float],
        population: Population,
        env: simpy.Environment,
    ) -> None:
        self._draw, self._env = draw, env
        self._rate = Powers(config.rate, population) if config.rate else None

    def gap(self) -> int | float:
        """Returns the time from now to the next start, in the clock's unit.

        Raises:
            ScenarioError: The law has drawn no time at all.
        """
        drawn = self._draw(0)
        if drawn <= 0:
            raise ScenarioError(
                "clients.selection.arrivals.gap must be > 0 in each draw, got 0; take "
                "a law without zeros"
            )
        if self._rate is None:
            return drawn
        return self._rate.duration(0, self._env.now, drawn)
