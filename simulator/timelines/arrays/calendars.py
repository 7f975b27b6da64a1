"""Clients that come and go: when each of many is there, from its own draws alone.

The same answers as `world.presence` gives for one client at a time. Questions about a
client must not go back in time.
"""

from abc import abstractmethod
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from ...laws.base import AnyLaw, Population
from ...laws.parameters import ClientValues
from ...streams import Purpose
from ...world.clients import (
    Behaviour,
    OnOff,
    Periodic,
)
from ...world.groups import ClientGroup
from ...world.presence import MOST_TURNS, Presence, restless
from ...world.slowdowns import Slowdown
from ...world.world import World
from .draws import StageDraws

AHEAD = 32
"""Durations of a client that are drawn at once."""
Clients = Int[np.ndarray, " C"]
Times = Float[np.ndarray, " C"]


class Calendar(Protocol):
    """The times at which each client is there; none of them infinite when asked."""

    @abstractmethod
    def since(self, clients: Clients, time: Times) -> Times:
        """Returns the earliest moments from `time` on at which clients are there."""


class LastingCalendar(Calendar, Protocol):
    """Such times, of which the end is the end of a job as well."""

    @abstractmethod
    def until(self, clients: Clients, time: Times) -> Times:
        """Returns when clients go that are there at `time`."""


class DrawnAhead:
    """Successive durations of clients, of which some are drawn ahead.

    Args:
        draws: Durations of a stage.
        number: Number of clients.
    """

    def __init__(self, draws: StageDraws, number: int) -> None:
        self._draws = draws
        self._known = np.zeros((number, AHEAD))
        self._next = np.full(number, AHEAD)

    def take(self, clients: Clients) -> Times:
        """Returns the next duration of some clients, each named once."""
        empty = clients[self._next[clients] == AHEAD]
        if empty.size:
            self._known[empty] = self._draws.next(empty, AHEAD).reshape(-1, AHEAD)
            self._next[empty] = 0
        found = self._known[clients, self._next[clients]]
        self._next[clients] += 1
        return found


class AlternatingRenewal:
    """There and away by turns, as `world.presence.Renewal`.

    Args:
        on: Times of being there.
        off: Times of being away.
        number: Number of clients.
    """

    def __init__(self, on: StageDraws, off: StageDraws, number: int) -> None:
        self._on, self._off = DrawnAhead(on, number), DrawnAhead(off, number)
        self._start, self._back = np.zeros((2, number))
        self._end = np.full(number, -1.0)

    def since(self, clients: Clients, time: Times) -> Times:
        """Returns `time`, or the ends of the times away that hold it."""
        self._advance(clients, time)
        there = np.maximum(time, self._start[clients])
        return np.where(time < self._end[clients], there, self._back[clients])

    def until(self, clients: Clients, time: Times) -> Times:
        """Returns the ends of the times there that hold `time`."""
        self._advance(clients, time)
        return self._end[clients]

    def _advance(self, clients: Clients, time: Times) -> None:
        turns = 0
        while (late := time >= self._back[clients]).any():
            clients, time = clients[late], time[late]
            turns += 1
            if turns > MOST_TURNS:
                first = int(clients[0])
                raise restless(first, float(self._back[first]), float(time[0]))
            self._start[clients] = self._back[clients]
            self._end[clients] = self._start[clients] + self._on.take(clients)
            self._back[clients] = self._end[clients] + self._off.take(clients)


class PeriodicCalendar:
    """There for the first part of a period, as `world.presence.PeriodicPresence`."""

    def __init__(self, config: Periodic, population: Population) -> None:
        self._period, self._on = config.period, config.on * config.period
        self._first = population.first
        self._phase = ClientValues.given(config.phase, population, "phase")

    def since(self, clients: Clients, time: Times) -> Times:
        """Returns `time`, or the beginnings of the next periods."""
        within = (time + self._phase.of(clients - self._first)) % self._period
        within[self._period - within < 1e-9 * self._period] = 0.0
        return np.where(within < self._on, time, time + self._period - within)


class MembershipCalendar:
    """There from joining until leaving, as `world.presence.Membership`."""

    def __init__(self, config: Behaviour, population: Population) -> None:
        self._first = population.first
        self._join = ClientValues.given(config.join, population, "join")
        self._leave = None
        if config.leave is not None:
            self._leave = ClientValues.given(config.leave, population, "leave")

    def since(self, clients: Clients, time: Times) -> Times:
        """Returns `time` or the moments of joining; infinite after leaving."""
        there = np.maximum(time, self._join.of(clients - self._first))
        return np.where(there < self.until(clients, time), there, np.inf)

    def until(self, clients: Clients, time: Times) -> Times:
        """Returns the moments of leaving."""
        if self._leave is None:
            return np.full(time.size, np.inf)
        leave = self._leave.of(clients - self._first)
        return np.broadcast_to(np.asarray(leave, np.float64), time.shape)


class TracedCalendar:
    """There in the intervals of a file, as `world.presence.TracedPresence`."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence

    def since(self, clients: Clients, time: Times) -> Times:
        """Returns `time` or the starts of the next intervals, infinite without one."""
        pairs = zip(clients.tolist(), time.tolist(), strict=True)
        return np.array([self._presence.since(*pair) for pair in pairs], np.float64)


class Presences:
    """When clients can begin a job, and when they lose the one that they are at.

    Args:
        world: World of the clients.
    """

    def __init__(self, world: World) -> None:
        self._group_of = world.group_of
        made = [_calendars(world, group) for group in world.groups]
        self._needed = [needed for needed, _ in made]
        self._lasting = [lasting for _, lasting in made]
        self.lasts = not any(self._lasting)
        """Whether every job that has started reaches its end."""

    def since(self, clients: Clients, time: Times) -> Times:
        """Returns when clients can begin from `time` on; infinite where never."""
        found = time.copy()
        for group, needed in enumerate(self._needed):
            left = np.flatnonzero(self._group_of[clients] == group)
            turns = 0
            while needed and left.size:
                turns += 1
                if turns > MOST_TURNS:
                    at = float(found[left[0]])
                    raise restless(int(clients[left[0]]), at, at)
                latest = found[left]
                for calendar in needed:
                    comes = np.isfinite(latest)
                    own = clients[left[comes]]
                    latest[comes] = calendar.since(own, latest[comes])
                moved = (latest != found[left]) & np.isfinite(latest)
                found[left] = latest
                left = left[moved]
        return found

    def until(self, clients: Clients, time: Times) -> Times:
        """Returns when clients that are there lose their jobs; infinite where never."""
        found = np.full(clients.size, np.inf)
        for group, lasting in enumerate(self._lasting):
            mine = np.flatnonzero(self._group_of[clients] == group)
            for calendar in lasting if mine.size else ():
                leaving = calendar.until(clients[mine], time[mine])
                found[mine] = np.minimum(found[mine], leaving)
        return found


def _calendars(
    world: World, group: ClientGroup
) -> tuple[list[Calendar], list[LastingCalendar]]:
    """Returns the calendars of a group: all, and those that end a job as well."""
    config, population = group.config, group.population
    needed: list[Calendar] = []
    lasting: list[LastingCalendar] = []
    match config.availability:
        case OnOff(on=on, off=off):
            turns = ((Purpose.AVAILABLE, on), (Purpose.UNAVAILABLE, off))
            needed.append(alternating(world, group, turns))
        case Periodic() as periodic:
            needed.append(PeriodicCalendar(periodic, population))
        case None:
            pass
        case _:
            needed.append(TracedCalendar(group.presences[0]))
    if config.leave is not None or config.join != 0:
        lasting.append(MembershipCalendar(config, population))
    if (crashes := config.crashes) is not None:
        turns = ((Purpose.UP, crashes.after), (Purpose.DOWN, crashes.down))
        lasting.append(alternating(world, group, turns))
    return [*needed, *lasting], lasting


def alternating(
    world: World,
    group: ClientGroup,
    turns: tuple[tuple[Purpose, AnyLaw], tuple[Purpose, AnyLaw]],
) -> AlternatingRenewal:
    """Returns when clients are in the first of two states that take turns.

    Args:
        world: World of the clients.
        group: The group whose clients they are.
        turns: Purposes and laws of the two states.
    """
    on, off = (
        StageDraws.alone(world, purpose, group.law(law, purpose), group.population)
        for purpose, law in turns
    )
    return AlternatingRenewal(on, off, world.num_clients)


def slow_times(
    world: World, slowdowns: tuple[Slowdown, ...]
) -> dict[int, AlternatingRenewal]:
    """Returns when clients are not slow, for each slowdown at times, by its number."""
    population = Population(world.num_clients, world.streams)
    everyone = ClientGroup(Behaviour(), population)
    found = {}
    for number, slowdown in enumerate(slowdowns):
        if slowdown.turns is not None:
            found[number] = alternating(world, everyone, slowdown.turns)
    return found
