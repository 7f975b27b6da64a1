"""The jobs that each client does one after the other, as arrays of their times."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Shaped

from ...files.timeline import Outcome
from ...world.faults import Losses
from ...world.links import OwnLinks
from ...world.slowdowns import ClientPace
from ...world.streams import Purpose
from ...world.world import World
from .job_arrays import NOT_READ, JobArrays, StageDraws


class Durations(NamedTuple):
    """How long the stages of some jobs take, in the clock's unit.

    Attributes:
        stages: Purpose of each, if it is drawn, and its durations.
        request: Number of stages before a client requests work from the server.
        read: Number of them before its read.
        started: Number of them before it begins to compute.
        computed: Number of them before it has computed.
        first_job: Number of the first job of each client.
        sends: Messages that each job sends; this and the next None where none is lost.
        lost: Whether none of them arrives.
        twice: Whether a copy follows.
    """

    stages: list[tuple[Purpose | None, Shaped[np.ndarray, "C n"] | float]]
    request: int
    read: int
    started: int
    computed: int
    first_job: Int[np.ndarray, " C"]
    sends: Int[np.ndarray, "C n"] | None = None
    lost: Bool[np.ndarray, "C n"] | None = None
    twice: Bool[np.ndarray, "C n"] | None = None


class Paths:
    """Every client's jobs, as many as needed."""

    def __init__(self, world: World) -> None:
        self._world, self._plain = world, world.is_plain
        stages = (Purpose.IDLE, Purpose.READ, Purpose.COMPUTE)
        ways = (Purpose.DOWNLOAD, Purpose.UPLOAD)
        self._idle, self._read, self._compute, self._down, self._up = (
            StageDraws(world, purpose) for purpose in (*stages, *ways)
        )
        links = world.feature(OwnLinks)
        self._seconds = {} if links is None else links.seconds
        self._losses, self._pace = world.feature(Losses), world.feature(ClientPace)
        self._in_turn = self._pace is not None and self._pace.in_turn
        """Whether durations depend on when they begin."""
        self.restarts_at_once = not (
            self._losses or self._idle.exists or self._read.exists
        )
        """Whether each job reads when the one before it has arrived."""
        self._was_lost = np.zeros(world.num_clients, bool)
        dtype = np.float64 if world.tick is None else np.int64
        self.last = np.zeros(world.num_clients, dtype)
        """Time at which each client's last job ended that is known."""
        self.jobs = np.zeros(world.num_clients, np.int64)
        """Jobs of each client that are known."""

    def extend(self, clients: Int[np.ndarray, " C"], n: int) -> JobArrays:
        """Returns the next `n` jobs of some clients."""
        drawn = self.durations(clients, n)
        # Sums are made one after the other, as the clock makes them.
        C, m = clients.size, len(drawn.stages)
        sums = np.empty((C, n * m + 1), self.last.dtype)
        sums[:, 0] = self.last[clients]
        added = sums[:, 1:].reshape(C, n, m)
        for place, (_, column) in enumerate(drawn.stages):
            added[:, :, place] = column
        if self._in_turn:
            self._add_in_turn(sums, drawn, clients)
        else:
            np.add.accumulate(sums, axis=1, out=sums)
        before = sums[:, :-1].reshape(C, n, m)

        def after(stages: int) -> np.ndarray:
            if stages < m:
                return before[:, :, stages].ravel()
            return sums[:, m::m].ravel()

        self.last[clients] = sums[:, -1]
        if drawn.lost is not None:
            self._was_lost[clients] = drawn.lost[:, -1]
        job = drawn.first_job[:, None] + np.arange(n)
        return self.work(drawn, np.repeat(clients, n), job.ravel(), after)

    def durations(self, clients: Int[np.ndarray, " C"], n: int) -> Durations:
        """Returns the durations of the stages of the next `n` jobs of some clients."""
        first_job = self.jobs[clients]
        sends = wait = lost = twice = None
        if self._losses is not None:
            sends, wait, lost, twice = self._losses.sendings(clients, first_job, n)
        stages: list[tuple[Purpose | None, np.ndarray | float]] = []
        if self._idle.exists:
            needed = None
            if lost is not None:
                needed = np.empty((clients.size, n), bool)
                needed[:, 0] = ~self._was_lost[clients]
                needed[:, 1:] = ~lost[:, :-1]
            idle = self._durations(self._idle, clients, n, needed)
            stages.append((Purpose.IDLE, idle))
        asked = len(stages)
        if self._read.exists:
            stages.append((Purpose.READ, self._durations(self._read, clients, n)))
        read = len(stages)
        if not self._plain:
            stages += self._transit(Purpose.DOWNLOAD, self._down, clients, n)
        started = len(stages)
        if self._compute.exists:
            drawn = self._durations(self._compute, clients, n)
            if self._pace is not None and not self._in_turn:
                job = first_job[:, None] + np.arange(n)
                drawn = drawn * self._pace.of_jobs(Purpose.COMPUTE, clients, job)
            stages.append((Purpose.COMPUTE, drawn))
        if self._world.workload.overhead_s and not self._plain:
            stages.append((None, self._world.workload.overhead_s))
        computed = len(stages)
        if wait is not None:
            stages.append((None, wait))
        if not self._plain:
            arrives = None if lost is None else ~lost
            stages += self._transit(Purpose.UPLOAD, self._up, clients, n, arrives)
        self.jobs[clients] += n
        counts = asked, read, started, computed
        return Durations(stages, *counts, first_job, sends, lost, twice)

    def work(
        self,
        drawn: Durations,
        client: Int[np.ndarray, " J"],
        job: Int[np.ndarray, " J"],
        after: Callable[[int], np.ndarray],
    ) -> JobArrays:
        """Returns jobs of which the times are known."""
        own = asks = asked = None
        if self._read.exists:
            own = np.ones(job.size, bool)
        if self._idle.exists:
            asked = after(drawn.request)
            asks = np.ones(job.size, bool) if self._plain else asked > after(0)
            if own is None:  # asking is the read
                own, asks, asked = asks, None, None
        return JobArrays(
            client=client,
            job=job,
            read=after(drawn.read),
            end=after(len(drawn.stages)),
            read_version=np.full(job.size, NOT_READ),
            read_slot=np.zeros(job.size, np.int64),
            own=own,
            request=asked,
            requests=asks,
            started=None if self._plain else after(drawn.started),
            computed=None if self._plain else after(drawn.computed),
            sends=None if drawn.sends is None else drawn.sends.ravel(),
            twice=None if drawn.twice is None else drawn.twice.ravel(),
            outcome=None
            if drawn.lost is None
            else drawn.lost.ravel() * int(Outcome.LOST),
        )

    def _add_in_turn(
        self, sums: np.ndarray, drawn: Durations, clients: Int[np.ndarray, " C"]
    ) -> None:
        """Adds up durations one after the other, each slowed as it is when it begins.

        Args:
            sums: Time of the beginning and durations of all jobs; times afterwards.
            drawn: The durations.
            clients: Whose they are.
        """
        assert self._pace is not None
        for at in range(1, sums.shape[1]):
            number, place = divmod(at - 1, len(drawn.stages))
            stage, since = drawn.stages[place][0], sums[:, at - 1]
            if stage is not None:
                job = (drawn.first_job + number)[:, None]
                sums[:, at] *= self._pace.of_jobs(stage, clients, job, since)[:, 0]
            sums[:, at] += since

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
    ) -> list[tuple[Purpose | None, np.ndarray | float]]:
        seconds = self._seconds.get(way)
        if seconds is None and not stage.exists:
            return []
        found = np.zeros((clients.size, n), self.last.dtype)
        if stage.exists:
            found = self._durations(stage, clients, n, needed)
        if seconds is not None:
            found = found + np.array(seconds)[clients][:, None]
            if needed is not None:
                found[~needed] = 0
        return [(way, found)]
