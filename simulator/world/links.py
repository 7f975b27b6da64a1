"""Links, of one client or shared by all, a server with a queue, and message budgets."""

import heapq
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import simpy
from typing_extensions import override

from .clients import Server
from .cycle import Duration, Feature, JobCourse, Then, Unlimited
from .laws.base import ClientValues
from .streams import Purpose

if TYPE_CHECKING:
    from .world import World


class Bottleneck:
    """A link whose bandwidth the messages under way share in equal parts.

    Processor sharing in virtual work: every message under way gets the same share, so
    they end in the order of the work that each had to see done when it came.

    Args:
        env: The clock.
        bandwidth: Bytes per virtual second.
    """

    def __init__(self, env: simpy.Environment, bandwidth: float) -> None:
        self._env, self._bandwidth = env, bandwidth
        self._work = 0.0  # bytes that a message under way from the start has sent
        self._since = 0.0
        self._under_way: list[tuple[float, int, int, Then]] = []
        self._sequence = 0
        self._expected = 0

    def send(self, client: int, size: float, then: Then) -> None:
        """Sends a message of `size` bytes; calls `then` with its client at its end."""
        self._advance()
        self._sequence += 1
        due = self._work + size
        heapq.heappush(self._under_way, (due, self._sequence, client, then))
        self._expect()

    def _advance(self) -> None:
        now = self._env.now
        if self._under_way:
            share = self._bandwidth / len(self._under_way)
            self._work += (now - self._since) * share
        self._since = now

    def _expect(self) -> None:
        """Waits for the next end; an end that was expected before is void."""
        self._expected += 1
        if not self._under_way:
            self._work = 0.0  # keeps its rounding errors from growing
            return
        left = max(self._under_way[0][0] - self._work, 0.0)
        delay = left * len(self._under_way) / self._bandwidth
        event = simpy.Timeout(self._env, delay, self._expected)
        event.callbacks.append(self._end)  # pyright: ignore[reportOptionalMemberAccess]

    def _end(self, event: simpy.Event) -> None:
        if event._value != self._expected:
            return
        self._advance()
        due, _, client, then = heapq.heappop(self._under_way)
        self._work = max(self._work, due)
        self._expect()
        then(client)


class OwnLinks(Feature):
    """Links of the clients' own: a message's bytes take time on them.

    Attributes:
        in_ticks: Whether no link takes time by bytes.
        seconds: Times of each client's message, per way on which some have any.
    """

    def __init__(self, world: "World") -> None:
        self.seconds: dict[Purpose, list[float]] = {}
        for way in (Purpose.UPLOAD, Purpose.DOWNLOAD):
            size = world.workload.message_bytes(way)
            seconds, limited = np.zeros(world.num_clients), False
            for number, group in enumerate(world.groups):
                link = getattr(group.config, way.name.lower())
                if link is not None and link.bandwidth is not None:
                    name, limited = f"{way.name}.bandwidth", True
                    rate = ClientValues.given(link.bandwidth, group.population, name)
                    seconds[world.groups.of == number] = size / rate.values
            if limited:
                self.seconds[way] = seconds.tolist()
        self.in_ticks = not self.seconds

    @override
    def duration(self, purpose: Purpose, takes: Duration) -> Duration:
        seconds = self.seconds.get(purpose)
        if seconds is None:
            return takes
        return lambda client, job, time: takes(client, job, time) + seconds[client]


class SharedLink(Feature):
    """A link whose bandwidth the messages of one way share.

    Args:
        world: World of the clients.
        way: `UPLOAD` or `DOWNLOAD`.
        bandwidth: Bytes per virtual second.
    """

    course: ClassVar[JobCourse] = JobCourse.WATCHED

    def __init__(self, world: "World", way: Purpose, bandwidth: float) -> None:
        self._way, self._link = way, Bottleneck(world.env, bandwidth)
        self._size = world.workload.message_bytes(way)

    @override
    def stage(self, purpose: Purpose, then: Then) -> Then:
        if purpose is not self._way:
            return then
        return lambda client: self._link.send(client, self._size, then)


class Queue(Feature):
    """One server that serves arrivals in their order."""

    in_ticks = True

    def __init__(self, world: "World", config: Server) -> None:
        self._world, self._evaluation = world, config.evaluation

    @override
    def stage(self, purpose: Purpose, then: Then) -> Then:
        if purpose is not Purpose.SERVICE:
            return then
        world, env = self._world, self._world.env
        free, number = env.now, 0

        def arrive(client: int) -> None:
            nonlocal free, number
            served = max(env.now, free) + world.draw(Purpose.SERVICE, client)
            number += 1
            free = served + self._busy(number)
            world.call(served - env.now, then, client)

        return arrive

    def _busy(self, served: int) -> int | float:
        """Returns how long the server evaluates before it serves the next one."""
        if self._evaluation is None or served % self._evaluation.every:
            return 0
        return self._world.draw(Purpose.EVALUATION, 0)


UNLIMITED = 2**62


class Quota(NamedTuple):
    """Messages that may be sent before a run ends.

    Attributes:
        each: Messages of each client, >= 0.
        in_all: Messages of all clients together.
        by_commit: Commits of a tree if those in commits alone count, as
            `ledger.CommitCosts` counts them; else 0.
    """

    each: tuple[int, ...]
    in_all: int = UNLIMITED
    by_commit: int = 0

    @property
    def digested(self) -> list[int]:
        """Returns its identity."""
        trees = self.by_commit > 1
        by_commit = self.by_commit if trees else self.by_commit == 1
        return [*self.each, self.in_all, by_commit]


class BudgetExhausted(Exception):  # noqa: N818
    """A client is about to send a message more than it may."""


class MessageBudget(Unlimited):
    """Counts the messages of clients; ends the run where one may send no more."""

    def __init__(self, quota: Quota) -> None:
        self._left, self._in_all = list(quota.each), quota.in_all
        self._has_sent = bytearray(len(quota.each))

    @override
    def expect(self, client: int) -> Then:
        self._has_sent[client] = 0
        return self.send

    @override
    def has_sent(self, client: int) -> bool:
        return bool(self._has_sent[client])

    @override
    def send(self, client: int) -> None:
        self.count(client)
        self._has_sent[client] = 1

    @override
    def count(self, client: int) -> None:
        if not (self._left[client] and self._in_all):
            raise BudgetExhausted
        self._left[client] -= 1
        self._in_all -= 1

    @override
    def counted(self, then: Then) -> Then:
        def sent(client: int) -> None:
            self.send(client)
            then(client)

        return sent
