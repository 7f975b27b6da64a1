"""Clients that come and go: when each of many is there, from its own draws alone.

The same answers as `world.presence` gives for one client at a time. Questions about a
client must not go back in time.
"""

import numpy as np

from ...laws.base import Population
from ...world.clients import Behaviour
from ...world.groups import ClientGroup
from ...world.presence import (
    MOST_TURNS,
    Clients,
    Membership,
    Presence,
    Times,
    Turns,
    restless,
)
from ...world.slowdowns import Slowdown
from ...world.world import World
from .draws import StageDraws

AHEAD = 32
"""Durations of a client that are drawn at once."""


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

    def since_each(self, clients: Clients, time: Times) -> Times:
        """Returns `time`, or the ends of the times away that hold it."""
        self._advance(clients, time)
        there = np.maximum(time, self._start[clients])
        return np.where(time < self._end[clients], there, self._back[clients])

    def until_each(self, clients: Clients, time: Times) -> Times:
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
                    latest[comes] = calendar.since_each(own, latest[comes])
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
                leaving = calendar.until_each(clients[mine], time[mine])
                found[mine] = np.minimum(found[mine], leaving)
        return found


def _calendars(
    world: World, group: ClientGroup
) -> tuple[list[Presence | AlternatingRenewal], list[Membership | AlternatingRenewal]]:
    """Returns the calendars of a group: all, and those that end a job as well."""
    config = group.config
    needed: list[Presence | AlternatingRenewal] = []
    lasting: list[Membership | AlternatingRenewal] = []
    if (availability := config.availability) is not None:
        turns = availability.turns
        made = alternating(world, group, turns) if turns else group.presences[0]
        needed.append(made)
    if group.membership is not None:
        lasting.append(group.membership)
    if config.crashes is not None:
        lasting.append(alternating(world, group, config.crashes.turns))
    return [*needed, *lasting], lasting


def alternating(world: World, group: ClientGroup, turns: Turns) -> AlternatingRenewal:
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
