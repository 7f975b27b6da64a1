"""The jobs that each client does one after the other, as arrays of their times."""

from collections.abc import Callable, Sequence
from math import log
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from simulator.streams import Purpose
from simulator.timelines.arrays.draws import StageDraws
from simulator.world.clients import (
    Clients,
    Loss,
    NamedSlowdown,
    RandomSlowdown,
    RegimeSlowdown,
)
from simulator.world.world import World

NOT_READ = -1
"""`read_version` of a job that has not started."""
NEAR = 1e-9
"""Distance from a whole number within which a logarithm is worked out once more."""


class JobArrays(NamedTuple):
    """Jobs, one client's after another's, each in order.

    Times are in the clock's unit. Columns that say nothing in a world are None.

    Attributes:
        client: Number of the client.
        job: Number of the job.
        read: Time of its read.
        end: Time of its arrival, or at which it came to nothing.
        read_version: Version that it has read, or `NOT_READ`.
        read_slot: Register of that version.
        own: Whether the read is an event of its own; None where none is.
        asked: Time of an event before the read, at which it asked the server for work.
        asks: Whether there is such an event.
        started: Time at which it began to compute; None where it does so at its read.
        computed: Time at which it had computed, and sent its message; None where it
            arrives at once.
        sends: Messages that it sends, repeats included; None where that is one.
        twice: Whether the last of them arrives twice.
        lost: Whether none arrives.
    """

    client: Int[np.ndarray, " J"]
    job: Int[np.ndarray, " J"]
    read: Shaped[np.ndarray, " J"]
    end: Shaped[np.ndarray, " J"]
    read_version: Int[np.ndarray, " J"]
    read_slot: Int[np.ndarray, " J"]
    own: Bool[np.ndarray, " J"] | None = None
    asked: Shaped[np.ndarray, " J"] | None = None
    asks: Bool[np.ndarray, " J"] | None = None
    started: Shaped[np.ndarray, " J"] | None = None
    computed: Shaped[np.ndarray, " J"] | None = None
    sends: Int[np.ndarray, " J"] | None = None
    twice: Bool[np.ndarray, " J"] | None = None
    lost: Bool[np.ndarray, " J"] | None = None

    def at(self, where: np.ndarray) -> "JobArrays":
        """Returns some of the jobs, by a mask or by places."""
        if where.dtype == bool:
            where = np.flatnonzero(where)
        columns: Any = (None if c is None else c[where] for c in self)
        return JobArrays(*columns)


def together(parts: Sequence[JobArrays]) -> JobArrays:
    """Returns the jobs of several pieces of one world."""
    columns: Any = (
        None if column[0] is None else np.concatenate(column)
        for column in zip(*parts, strict=True)
    )
    return JobArrays(*columns)


class Losses(NamedTuple):
    """How the uploads of some jobs fare.

    Attributes:
        sends: Messages sent.
        wait: Seconds after the first sending at which the last one is sent, or after
            which the client gives up.
        lost: Whether none arrived.
        twice: Whether a copy follows.
    """

    sends: Int[np.ndarray, "C n"]
    wait: Float[np.ndarray, "C n"]
    lost: Bool[np.ndarray, "C n"]
    twice: Bool[np.ndarray, "C n"]


class Durations(NamedTuple):
    """How long the stages of some jobs take, in the clock's unit.

    Attributes:
        columns: Durations of each stage.
        asked: Number of stages before a client asks the server for work.
        read: Number of them before its read.
        started: Number of them before it begins to compute.
        computed: Number of them before it has computed.
        first_job: Number of the first job of each client.
        fate: How their uploads fare, where they may be lost.
    """

    columns: list[Shaped[np.ndarray, "C n"] | float]
    asked: int
    read: int
    started: int
    computed: int
    first_job: Int[np.ndarray, " C"]
    fate: Losses | None


class Paths:
    """Every client's jobs, as many as are asked for.

    Args:
        world: World of the clients, without feedback.
        clients: Its configuration.
    """

    def __init__(self, world: World, clients: Clients) -> None:
        self._world, self._plain = world, world.is_plain
        stages = (Purpose.IDLE, Purpose.READ, Purpose.COMPUTE)
        ways = (Purpose.DOWNLOAD, Purpose.UPLOAD)
        self._idle, self._read, self._compute, self._down, self._up = (
            StageDraws(world, purpose) for purpose in (*stages, *ways)
        )
        self._seconds = {way: world.transfer_seconds(way) for way in ways}
        self._losses = [group.config.loss for group in world.groups]
        self.loses = any(self._losses)
        """Whether messages may be lost."""
        self.restarts_at_once = not (
            self.loses or self._idle.exists or self._read.exists
        )
        """Whether each job reads when the one before it has arrived."""
        self._was_lost = np.zeros(world.num_clients, bool)
        self._units = np.array(world.units, np.float64)
        self._slowdowns = clients.slowdowns
        self._slows = bool(clients.slowdowns) or bool((self._units != 1).any())
        dtype = np.float64 if world.tick is None else np.int64
        self.last = np.zeros(world.num_clients, dtype)
        """Time at which each client's last job ended that is known."""
        self.jobs = np.zeros(world.num_clients, np.int64)
        """Jobs of each client that are known."""

    def extend(self, clients: Int[np.ndarray, " C"], n: int) -> JobArrays:
        """Returns the next `n` jobs of some clients.

        Args:
            clients: Their numbers, each once.
            n: How many of each, >= 1.
        """
        drawn = self.durations(clients, n)
        # Sums are made one after the other, as the clock makes them.
        C, m = clients.size, len(drawn.columns)
        sums = np.empty((C, n * m + 1), self.last.dtype)
        sums[:, 0] = self.last[clients]
        added = sums[:, 1:].reshape(C, n, m)
        for place, column in enumerate(drawn.columns):
            added[:, :, place] = column
        np.add.accumulate(sums, axis=1, out=sums)
        before = sums[:, :-1].reshape(C, n, m)

        def after(stages: int) -> np.ndarray:
            if stages < m:
                return before[:, :, stages].ravel()
            return sums[:, m::m].ravel()

        self.last[clients] = sums[:, -1]
        if drawn.fate is not None:
            self._was_lost[clients] = drawn.fate.lost[:, -1]
        job = drawn.first_job[:, None] + np.arange(n)
        return self.work(drawn, np.repeat(clients, n), job.ravel(), after)

    def durations(self, clients: Int[np.ndarray, " C"], n: int) -> Durations:
        """Returns how long the stages of the next `n` jobs of some clients take.

        Args:
            clients: Their numbers, each once.
            n: How many of each, >= 1.
        """
        C = clients.size
        fate = self._fates(clients, n) if self.loses else None
        columns: list[np.ndarray | float] = []
        if self._idle.exists:
            needed = None
            if fate is not None:
                needed = np.empty((C, n), bool)
                needed[:, 0] = ~self._was_lost[clients]
                needed[:, 1:] = ~fate.lost[:, :-1]
            columns.append(self._durations(self._idle, clients, n, needed))
        asked = len(columns)
        if self._read.exists:
            columns.append(self._durations(self._read, clients, n))
        read = len(columns)
        if not self._plain:
            columns += self._transit(Purpose.DOWNLOAD, self._down, clients, n)
        started = len(columns)
        if self._compute.exists:
            drawn = self._durations(self._compute, clients, n)
            if self._slows:
                drawn = drawn * self._slowness(clients, n)
            columns.append(drawn)
        if self._world.workload.overhead_s and not self._plain:
            columns.append(self._world.workload.overhead_s)
        computed = len(columns)
        if fate is not None:
            columns.append(fate.wait)
        if not self._plain:
            arrives = None if fate is None else ~fate.lost
            columns += self._transit(Purpose.UPLOAD, self._up, clients, n, arrives)
        first_job = self.jobs[clients]
        self.jobs[clients] += n
        return Durations(columns, asked, read, started, computed, first_job, fate)

    def work(
        self,
        drawn: Durations,
        client: Int[np.ndarray, " J"],
        job: Int[np.ndarray, " J"],
        after: Callable[[int], np.ndarray],
    ) -> JobArrays:
        """Returns jobs of which the times are known.

        Args:
            drawn: Durations of their stages.
            client: Their clients.
            job: Their numbers.
            after: Returns the times at which so many stages were over.
        """
        own = asks = asked = None
        if self._read.exists:
            own = np.ones(job.size, bool)
        if self._idle.exists:
            asked = after(drawn.asked)
            asks = np.ones(job.size, bool) if self._plain else asked > after(0)
            if own is None:  # asking is the read
                own, asks, asked = asks, None, None
        fate = drawn.fate
        return JobArrays(
            client=client,
            job=job,
            read=after(drawn.read),
            end=after(len(drawn.columns)),
            read_version=np.full(job.size, NOT_READ),
            read_slot=np.zeros(job.size, np.int64),
            own=own,
            asked=asked,
            asks=asks,
            started=None if self._plain else after(drawn.started),
            computed=None if self._plain else after(drawn.computed),
            sends=None if fate is None else fate.sends.ravel(),
            twice=None if fate is None else fate.twice.ravel(),
            lost=None if fate is None else fate.lost.ravel(),
        )

    def _durations(
        self,
        stage: StageDraws,
        clients: np.ndarray,
        n: int,
        needed: Bool[np.ndarray, "C n"] | None = None,
    ) -> Shaped[np.ndarray, "C n"]:
        """Returns the next durations of a stage, 0 where none is needed."""
        if needed is None:
            return stage.next(clients, n).reshape(clients.size, n)
        found = np.zeros(needed.shape, self.last.dtype)
        found[needed] = stage.next(clients, needed.sum(axis=1))
        return found

    def _transit(
        self,
        way: Purpose,
        stage: StageDraws,
        clients: np.ndarray,
        n: int,
        needed: Bool[np.ndarray, "C n"] | None = None,
    ) -> list[np.ndarray]:
        """Returns how long messages take on the clients' own links, if they do."""
        seconds = self._seconds[way]
        if seconds is None and not stage.exists:
            return []
        found = np.zeros((clients.size, n), self.last.dtype)
        if stage.exists:
            found = self._durations(stage, clients, n, needed)
        if seconds is not None:
            found = found + seconds[clients][:, None]
            if needed is not None:
                found[~needed] = 0
        return [found]

    def _slowness(self, clients: np.ndarray, n: int) -> np.ndarray:
        """Returns by what draws of computing time are multiplied."""
        factor = np.repeat(self._units[clients][:, None], n, axis=1)
        job = self.jobs[clients][:, None] + np.arange(n)
        for slowdown in self._slowdowns:
            match slowdown:
                case NamedSlowdown(clients=named, factor=by):
                    slow = np.isin(clients, np.array(named) - 1)[:, None]
                case RandomSlowdown(factor=by):
                    slow = self._slowest(job) == clients[:, None]
                case RegimeSlowdown():
                    raise AssertionError("slow times are played")
            factor = np.where(slow, factor * by, factor)
        return factor

    def _slowest(self, job: Int[np.ndarray, "C n"]) -> Int[np.ndarray, "C n"]:
        """Returns which client is slow in some iterations."""
        first = int(job.min())
        first -= first % 4
        number = int(job.max()) + 1 - first
        streams = self._world.streams
        uniform = streams.uniforms(Purpose.SLOWEST, 0, first, number)
        return (uniform * self._world.num_clients).astype(np.int64)[job - first]

    def _fates(self, clients: np.ndarray, n: int) -> Losses:
        shape = clients.size, n
        sends, wait = np.ones(shape, np.int64), np.zeros(shape)
        lost, twice = np.zeros(shape, bool), np.zeros(shape, bool)
        group_of = self._world.group_of[clients]
        for group, config in enumerate(self._losses):
            mine = np.flatnonzero(group_of == group)
            if config is None or not mine.size:
                continue
            own = self._losses_of(config, clients[mine], n)
            sends[mine], wait[mine], lost[mine], twice[mine] = own
        return Losses(sends, wait, lost, twice)

    def _losses_of(self, config: Loss, clients: np.ndarray, n: int) -> Losses:
        """Returns how the uploads of a group fare, as `Lossy.send` has it."""
        streams, job = self._world.streams, self.jobs[clients]
        uniform = streams.rectangle(Purpose.LOSS, clients, job, n)
        times = np.zeros(uniform.shape, np.int64)
        if config.chance:
            by = log(config.chance)
            ratio = np.log(uniform) / by
            times = ratio.astype(np.int64)
            # NumPy's logarithm may differ from Python's in the last bit.
            doubtful = abs(ratio - np.rint(ratio)) < NEAR * (1 + ratio)
            for place in zip(*np.nonzero(doubtful), strict=True):
                times[place] = int(log(uniform[place]) / by)
        lost = times > config.retries
        sends = np.minimum(times, config.retries) + 1
        wait = np.where(lost, sends, sends - 1) * config.timeout
        copied = streams.rectangle(Purpose.DUPLICATE, clients, job, n)
        twice = ~lost & (copied < config.duplicates)
        return Losses(sends + twice, wait, lost, twice)
