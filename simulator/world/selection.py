"""Who begins a job: selected clients, or arrivals of an open system."""

from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from ..files.timeline import NO_WORKER, Incident
from ..parts.errors import ScenarioError
from ..parts.expressions import per_client
from .clients import OpenArrivals, Selection
from .cycle import Everyone, Then
from .laws.base import Population
from .streams import Purpose

if TYPE_CHECKING:
    from .world import World

BLOCK = 4096
"""Candidates that are drawn at once."""
TRIES = 1000
"""Candidates that are looked at before the whole population is."""


class Pool:
    """The clients who wait to be selected.

    Args:
        config: Number of clients in flight, and how they are chosen.
        world: World of the clients.

    Attributes:
        config: As given.
        in_flight: Jobs that may be under way.
        refill: Free places with which new jobs start.
    """

    def __init__(self, config: Selection, world: "World") -> None:
        n = self._num_clients = world.num_clients
        self.config, self.world = config, world
        self.in_flight = min(config.in_flight, n)
        self.refill = min(config.refill, self.in_flight)
        # Where all are always there, presence need not be asked.
        self._since = None if world.presence.is_always else world.present_since
        self._busy = bytearray(n)
        self._candidates: list[int] = []
        self._drawn = 0
        self._edges: np.ndarray | None = None
        if config.by == "weighted":
            exact = per_client(config.weights, n, "clients.selection.weights")
            weights = np.array([float(weight) for weight in exact])
            if not (weights >= 0).all() or not weights.any():
                raise ScenarioError(
                    "clients.selection.weights must be >= 0 and not all 0; change them"
                )
            self._edges = np.cumsum(weights) / weights.sum()

    @property
    def is_rated(self) -> bool:
        """Whether the rate of starts changes over time, so that gaps are no ticks."""
        opened = self.config.arrivals
        return opened is not None and opened.rate is not None

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

    def ready(self, then: Then, argument: int) -> None:
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

    def next_present(self) -> float | None:
        """Returns when the first of them is there; None if none ever is."""
        now, since = self.world.env.now, self.world.present_since
        back = min((since(c, now) for c in self.waiting()), default=inf)
        return None if back == inf else back

    def hold(self, client: int) -> None:
        """Notes that a client is under way."""
        self._busy[client] = 1

    def crew(self, begin: Then) -> "Selected":
        """Returns who begins jobs, as the scenario's selection says."""
        if self.config.arrivals is not None:
            return OpenSystem(self, begin, self.config.arrivals)
        return Selected(self, begin)

    def _draw(self) -> None:
        n, first = self._num_clients, self._drawn
        self._drawn += BLOCK
        if self.config.by == "cyclic":
            drawn = np.arange(first, first + BLOCK) % n
        else:
            uniform = self.world.streams.uniforms(Purpose.SELECT, 0, first, BLOCK)
            if self._edges is None:
                drawn = (uniform * n).astype(np.int64)
            else:
                drawn = np.searchsorted(self._edges, uniform, side="right")
                drawn = np.minimum(drawn, n - 1)
        self.world.delays.prefetch(drawn)
        self._candidates = drawn[::-1].tolist()


class Selected(Everyone):
    """A client that the pool chooses begins where another's job has ended."""

    def __init__(self, pool: Pool, begin: Then) -> None:
        super().__init__(pool.world, begin)
        self._pool, self._env = pool, pool.world.env
        self._in_flight, self._is_waiting = 0, False
        pass_on = partial(pool.ready, self._succeed, 0)
        self._free = pass_on if pool.refill == 1 else self.leave
        self.again = self._give_back

    @override
    def start(self) -> None:
        self._pool.ready(self._fill, 0)

    @override
    def replace(self, client: int, appear: Then) -> None:
        if self._world.present_since(client, self._env.now) == inf:
            appear(client)
        else:
            self.again(client)

    @override
    def leave(self) -> None:
        self._in_flight -= 1
        if self._pool.in_flight - self._in_flight >= self._pool.refill:
            self.start()

    def _give_back(self, client: int) -> None:
        self._pool.give_back(client)
        self._free()

    def _succeed(self, _: int) -> None:
        """Lets the next client begin in the place of one whose job is done."""
        successor = self._pool.take(self._env._now)
        if successor is None:
            self._in_flight -= 1
            self._wait_for_anybody()
        else:
            self._begin(successor)

    def _fill(self, _: int) -> None:
        now = self._env._now
        while self._in_flight < self._pool.in_flight:
            client = self._pool.take(now)
            if client is None:
                self._wait_for_anybody()
                return
            self._in_flight += 1
            self._begin(client)

    def _wait_for_anybody(self) -> None:
        back = None if self._is_waiting else self._pool.next_present()
        if back is None:
            return
        self._is_waiting = True

        def try_again(_: int) -> None:
            self._is_waiting = False
            self.start()

        self._world.call_at(back, try_again, 0)


class OpenSystem(Selected):
    """Jobs start independently of their durations."""

    def __init__(self, pool: Pool, begin: Then, config: OpenArrivals) -> None:
        from .power import powers

        super().__init__(pool, begin)
        everyone = Population(pool.world.num_clients, pool.world.streams)
        self._rate = powers(config.rate, everyone)[0] if config.rate else None
        self._free = self.leave

    @override
    def start(self) -> None:
        offer = partial(self._pool.ready, self._open)
        self._world.call(self._gap(), offer, 0)

    @override
    def leave(self) -> None:
        self._in_flight -= 1

    def _gap(self) -> int | float:
        """Returns the time from now to the next start, in the clock's unit."""
        drawn = self._world.draw(Purpose.ARRIVAL, 0)
        if drawn <= 0:
            raise ScenarioError(
                "clients.selection.arrivals.gap must be > 0 in each draw, got 0; take "
                "a law without zeros"
            )
        if self._rate is None:
            return drawn
        return self._rate(self._env.now, drawn)

    def _open(self, _: int) -> None:
        """Begins a job, or misses it where no place or no client is free."""
        client = None
        if self._in_flight < self._pool.in_flight:
            client = self._pool.take(self._env._now)
        if client is None:
            self._world.note(self._env.now, NO_WORKER, Incident.MISSED)
            if self._is_stuck():
                return  # starts would be missed for ever
        else:
            self._in_flight += 1
            self._begin(client)
        self.start()

    def _is_stuck(self) -> bool:
        """Returns whether no job under way can end, and no free client returns."""
        if not self._world.is_over:
            return False
        if self._in_flight >= self._pool.in_flight:
            return True
        return self._pool.next_present() is None
