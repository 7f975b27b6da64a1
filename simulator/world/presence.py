"""Presence of clients: availability, joining, leaving, crashes, slow times.

Everything is worked out when it is asked for, client by client and forward in time, so
that a client who is away costs no event.
"""

from abc import abstractmethod
from collections.abc import Callable
from itertools import pairwise
from math import inf
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from ..config.errors import DataError, ScenarioError
from ..laws.base import Population
from ..laws.parameters import ClientValues
from ..storage import files, table
from .clients import Periodic, Traced

Draw = Callable[[int], float]
"""Returns a client's next duration."""


MOST_TURNS = 1_000_000
"""Times that a client may come and go from one of its jobs to the next."""


def restless(client: int, start: float, time: float) -> ScenarioError:
    """Returns the error of a client that comes and goes without end.

    Args:
        client: Number of the client, from 0.
        start: When it came last, virtual seconds.
        time: When it is asked for.
    """
    return ScenarioError(
        f"clients.availability, crashes and slowdowns must let a client begin, but "
        f"client {client + 1} comes and goes more than {MOST_TURNS:,} times, or too "
        f"shortly for the clock, from {start:g} s to {time:g} s; give laws of longer "
        f"times"
    )


@runtime_checkable
class Presence(Protocol):
    """The times at which each client is there.

    A client's questions must not go back in time.
    """

    @abstractmethod
    def since(self, client: int, time: float) -> float:
        """Returns the earliest moment from `time` on at which the client is there."""


@runtime_checkable
class Lasting(Presence, Protocol):
    """Such times, of which the end is the end of a job as well."""

    @abstractmethod
    def until(self, client: int, time: float) -> float:
        """Returns when it goes, if it is there at `time`."""


class Renewal:
    """There and away by turns, for independent times; first there.

    Args:
        on: Draws times of being there.
        off: Draws times of being away.
        num_clients: How many.
        first: Number of the first of them.
    """

    def __init__(self, on: Draw, off: Draw, num_clients: int, first: int = 0) -> None:
        self._on, self._off, self._first = on, off, first
        self._start: list[float] = [0.0] * num_clients
        self._end: list[float] = [-1.0] * num_clients
        self._back: list[float] = [0.0] * num_clients

    def since(self, client: int, time: float) -> float:
        """Returns `time`, or the end of the time away that holds it."""
        own = self._advance(client, time)
        return max(time, self._start[own]) if time < self._end[own] else self._back[own]

    def until(self, client: int, time: float) -> float:
        """Returns the end of the time there that holds `time`."""
        return self._end[self._advance(client, time)]

    def _advance(self, client: int, time: float) -> int:
        own, turns = client - self._first, 0
        while time >= self._back[own]:
            start = self._back[own]
            end = start + self._on(client)
            self._start[own], self._end[own] = start, end
            self._back[own] = end + self._off(client)
            turns += 1
            if turns > MOST_TURNS:
                raise restless(client, start, time)
        return own


class PeriodicPresence:
    """There for the first part of every period."""

    def __init__(self, config: Periodic, population: Population) -> None:
        self._period, self._on = config.period, config.on * config.period
        self._first = population.first
        self._phase = ClientValues.given(config.phase, population, "phase")

    def since(self, client: int, time: float) -> float:
        """Returns `time`, or the beginning of the next period."""
        within = self._within(client, time)
        return time if within < self._on else time + self._period - within

    def _within(self, client: int, time: float) -> float:
        phase = float(self._phase.of(client - self._first))
        within = (time + phase) % self._period
        # A moment that was computed as the start of a period is one, despite rounding.
        return 0.0 if self._period - within < 1e-9 * self._period else within


class TracedPresence:
    """There in given intervals."""

    def __init__(self, intervals: list[Float[np.ndarray, "_ 2"]], first: int) -> None:
        self._intervals, self._first = intervals, first

    def since(self, client: int, time: float) -> float:
        """Returns `time` or the start of the next interval, infinite if none comes."""
        mine = self._intervals[client - self._first]
        at = int(np.searchsorted(mine[:, 1], time, side="right"))
        return max(time, float(mine[at, 0])) if at < len(mine) else inf


class Membership:
    """There from the moment of joining until that of leaving."""

    def __init__(
        self, join: ClientValues, leave: ClientValues | None, first: int
    ) -> None:
        self._join, self._leave, self._first = join, leave, first

    def since(self, client: int, time: float) -> float:
        """Returns `time` or the moment of joining; infinite after leaving."""
        there = max(time, float(self._join.of(client - self._first)))
        return there if there < self.until(client, time) else inf

    def until(self, client: int, time: float) -> float:
        """Returns the moment of leaving."""
        del time
        if self._leave is None:
            return inf
        return float(self._leave.of(client - self._first))


def read_intervals(config: Traced, population: Population) -> TracedPresence:
    """Reads intervals of availability.

    Raises:
        DataError: a file that is not there or damaged, or lacks a column.
        ScenarioError: intervals that end before they start, or overlap.
    """
    path = files.located(config.path, "clients.availability.path")
    columns = table.measurements(path, ("client", "start", "end"))
    owner, start, end = (columns[name] for name in ("client", "start", "end"))
    wrong = ~(end > start)
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(
            f"{path} must have every end after its start, got {end[row]:g} after "
            f"{start[row]:g} in row {row + 1}; correct it"
        )
    intervals = []
    for number in range(population.first + 1, population.first + population.size + 1):
        mine = np.stack([start, end], axis=1)[owner == number]
        mine = mine[np.argsort(mine[:, 0])]
        for (_, before), (after, _) in pairwise(mine):
            if after < before:
                raise ScenarioError(
                    f"{path} must have intervals that do not overlap, got one of "
                    f"client {number} from {after:g} before the end {before:g} of "
                    f"another; join them"
                )
        intervals.append(mine)
    return TracedPresence(intervals, population.first)
