"""Presence of clients: joining, leaving, and times there and away by turns.

Everything is computed on demand, client by client and forward in time, so that an
absent client costs no event.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING

from typing_extensions import override

from ..parts.errors import ScenarioError
from .cycle import AlwaysThere, Feature
from .laws.base import ClientValues, Population
from .laws.distributions import Parameter

if TYPE_CHECKING:
    from .delays import Groups

Draw = Callable[[int], float]
"""Returns a client's next duration."""


MOST_TURNS = 1_000_000
"""Times that a client may come and go from one of its jobs to the next."""


def restless(client: int, start: float, time: float) -> ScenarioError:
    """Returns the error of a client that comes and goes without end.

    Args:
        client: Number of the client, from 0.
        start: When it came last, virtual seconds.
        time: Time of the query.
    """
    return ScenarioError(
        f"clients.availability, crashes and slowdowns must let a client begin, but "
        f"client {client + 1} comes and goes more than {MOST_TURNS:,} times, or too "
        f"shortly for the clock, from {start:g} s to {time:g} s; give laws of longer "
        f"times"
    )


class Presence(ABC):
    """The times at which each client is there.

    A client's questions must not go back in time.
    """

    @abstractmethod
    def since(self, client: int, time: float) -> float:
        """Returns the earliest moment from `time` on at which the client is there.

        Args:
            client: Number of the client, from 0.
            time: Virtual seconds; finite.

        Returns:
            `time` if it is there, infinite if it never comes.
        """


class Lasting(Presence):
    """Such times, of which the end is the end of a job as well."""

    @abstractmethod
    def until(self, client: int, time: float) -> float:
        """Returns when it goes, if it is there at `time`."""


class Renewal(Lasting):
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
        own = self._advance(client, time)
        return max(time, self._start[own]) if time < self._end[own] else self._back[own]

    def until(self, client: int, time: float) -> float:
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


class Membership(Lasting):
    """Present from the moment of joining until that of leaving.

    Args:
        join: Virtual seconds, as the scenario has them.
        leave: The same; None for never.
        population: The clients.
    """

    def __init__(
        self, join: Parameter, leave: Parameter | None, population: Population
    ) -> None:
        self._first = population.first
        self._join = ClientValues.given(join, population, "join")
        self._leave = None
        if leave is not None:
            self._leave = ClientValues.given(leave, population, "leave")

    def since(self, client: int, time: float) -> float:
        there = max(time, float(self._join.of(client - self._first)))
        return there if there < self.until(client, time) else inf

    def until(self, client: int, time: float) -> float:
        if self._leave is None:
            return inf
        return float(self._leave.of(client - self._first))


def since_all(presences: Sequence[Presence], client: int, time: float) -> float:
    """Returns the earliest moment from `time` on at which a client is there by all."""
    for _ in range(MOST_TURNS):
        latest = time
        for presence in presences:
            latest = presence.since(client, latest)
            if latest == inf:
                return inf
        if latest == time:
            return time
        time = latest
    raise restless(client, time, time)


class Presences(AlwaysThere, Feature):
    """Presence of clients who come and go."""

    is_always = False

    def __init__(self, groups: "Groups") -> None:
        self._lasting: list[Sequence[Lasting]] = []
        self._all: list[Sequence[Presence]] = []
        self._membership: list[Membership | None] = []
        for group in groups:
            config, population = group.config, group.population
            presences: list[Presence] = []
            lasting: list[Lasting] = []
            membership = None
            if (availability := config.availability) is not None:
                turns = availability.turns
                made = group.renewal(turns) if turns else availability.make(population)
                presences.append(made)
            if config.leave is not None or config.join != 0:
                membership = Membership(config.join, config.leave, population)
                lasting.append(membership)
            if config.crashes is not None:
                lasting.append(group.renewal(config.crashes.turns))
            self._membership.append(membership)
            self._lasting.append(lasting)
            self._all.append([*presences, *lasting])
        self._group_of = groups.of.tolist()

    @override
    def since(self, client: int, time: float) -> float:
        return since_all(self._all[self._group_of[client]], client, time)

    @override
    def until(self, client: int, time: float) -> float:
        lasting = self._lasting[self._group_of[client]]
        return min((presence.until(client, time) for presence in lasting), default=inf)

    @override
    def has_left(self, client: int, time: float) -> bool:
        membership = self._membership[self._group_of[client]]
        return membership is not None and membership.until(client, time) <= time
