"""The jobs that each client does one after the other, as arrays of their times."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from ...streams import Purpose
from ...timeline import Incident, Outcome
from ...world.clients import (
    Clients,
)
from ...world.shared_slowdown import SharedFactors
from ...world.world import World
from .calendars import (
    AlternatingRenewal,
    DrawnAhead,
    Presences,
    slow_times,
)
from .draws import StageDraws
from .job_arrays import NOT_READ, JobArrays
from .losses import Losses, losses


class Durations(NamedTuple):
    """How long the stages of some jobs take, in the clock's unit.

    Attributes:
        columns: Durations of each stage.
        request: Number of stages before a client asks the server for work.
        read: Number of them before its read.
        started: Number of them before it begins to compute.
        computed: Number of them before it has computed.
        first_job: Number of the first job of each client.
        losses: How their uploads fare, where they may be lost.
    """

    columns: list[Shaped[np.ndarray, "C n"] | float]
    request: int
    read: int
    started: int
    computed: int
    first_job: Int[np.ndarray, " C"]
    losses: Losses | None


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
        comes_and_goes = any(group.presences for group in world.groups)
        self._presences = Presences(world) if comes_and_goes else None
        self._slow_times = slow_times(world, clients.slowdowns)
        self._moments = {
            number: made
            for number, made in enumerate(world.slowdowns)
            if isinstance(made, SharedFactors)
        }
        self.by_steps = comes_and_goes or bool(self._slow_times or self._moments)
        """Whether a job's times depend on when it begins."""
        if self.by_steps:
            self._idle_ahead = DrawnAhead(self._idle, world.num_clients)
        self._crashed = np.zeros(world.num_clients, bool)
        self.restarts_at_once = not (
            self.loses or self._idle.exists or self._read.exists or self.by_steps
        )
        """Whether each job reads when the one before it has arrived."""
        self._was_lost = np.zeros(world.num_clients, bool)
        self._units = np.array(world.units, np.float64)
        self._slowdowns = clients.slowdowns
        self._slows = bool(clients.slowdowns) or bool((self._units != 1).any())
        self._slows = self._slows or world.work is not None
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
        if self.by_steps:
            return self._step_by_step(clients, n)
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
        if drawn.losses is not None:
            self._was_lost[clients] = drawn.losses.lost[:, -1]
        job = drawn.first_job[:, None] + np.arange(n)
        return self.work(drawn, np.repeat(clients, n), job.ravel(), after)

    def durations(self, clients: Int[np.ndarray, " C"], n: int) -> Durations:
        """Returns how long the stages of the next `n` jobs of some clients take.

        Args:
            clients: Their numbers, each once.
            n: How many of each, >= 1.
        """
        C = clients.size
        fate = (
            losses(self._world, clients, self.jobs[clients], n) if self.loses else None
        )
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
            after: Returns the times at which the first stages were over.
        """
        own = asks = asked = None
        if self._read.exists:
            own = np.ones(job.size, bool)
        if self._idle.exists:
            asked = after(drawn.request)
            asks = np.ones(job.size, bool) if self._plain else asked > after(0)
            if own is None:  # asking is the read
                own, asks, asked = asks, None, None
        fate = drawn.losses
        return JobArrays(
            client=client,
            job=job,
            read=after(drawn.read),
            end=after(len(drawn.columns)),
            read_version=np.full(job.size, NOT_READ),
            read_slot=np.zeros(job.size, np.int64),
            own=own,
            request=asked,
            requests=asks,
            started=None if self._plain else after(drawn.started),
            computed=None if self._plain else after(drawn.computed),
            sends=None if fate is None else fate.sends.ravel(),
            twice=None if fate is None else fate.twice.ravel(),
            outcome=None if fate is None else fate.lost.ravel() * int(Outcome.LOST),
        )

    def _step_by_step(self, clients: np.ndarray, n: int) -> JobArrays:
        """Returns the next jobs of some clients, whose times say what becomes of them.

        All clients make a step at a time; `world.cycle` says in which order.
        """
        C = clients.size
        fate = (
            losses(self._world, clients, self.jobs[clients], n) if self.loses else None
        )
        zeros = np.zeros((C, n))
        reads = self._read.exists
        wait = self._durations(self._read, clients, n) if reads else zeros
        (fetch,) = self._transit(Purpose.DOWNLOAD, self._down, clients, n) or [zeros]
        drawn = self._durations(self._compute, clients, n)
        arrives = None if fate is None else ~fate.lost
        up = self._transit(Purpose.UPLOAD, self._up, clients, n, arrives) or [zeros]
        slow, first = self._slow_jobs(clients, n), self.jobs[clients]
        work = self._work(clients, n)
        self.jobs[clients] += n
        times = np.empty((5, C, n))
        lost = zeros.astype(bool) if fate is None else fate.lost
        sends = np.ones((C, n), np.int64) if fate is None else fate.sends.copy()
        fates = lost * int(Outcome.LOST)
        asks = np.empty((C, n), bool)
        noted, note = np.full((C, n), np.nan), np.zeros((C, n), np.int64)
        for j in range(n):
            now = self.last[clients]
            asked = earliest = self._idled(clients, now)
            there = np.isfinite(now)
            back = np.full(C, np.nan)
            if self._presences is not None:
                # Who has crashed is noted before it asks, as SimPy's player does: an
                # answer may depend on what was asked before.
                down = np.flatnonzero(there & self._crashed[clients])
                back[down] = self._presences.since(clients[down], now[down])
                asked = np.full(C, np.inf)
                asked[there] = self._presences.since(clients[there], earliest[there])
            comes = np.isfinite(asked)
            read = asked + wait[:, j]
            slowed = self._slowed(Purpose.DOWNLOAD, clients, read)
            started = read + fetch[:, j] * slowed
            factor = self._units[clients]
            for by, which in slow:
                if isinstance(which, SharedFactors):
                    at = started[comes]
                    factor[comes] *= which.of_each(clients[comes], at)
                    continue
                is_slow = np.zeros(C, bool)
                if isinstance(which, AlternatingRenewal):
                    at = started[comes]
                    is_slow[comes] = which.since_each(clients[comes], at) != at
                else:
                    is_slow = which[:, j]
                factor = np.where(is_slow, factor * by, factor)
            if work is not None:
                factor = factor * work[:, j]
            computed = started + drawn[:, j] * factor
            computed = computed + self._world.workload.overhead_s
            end = computed if fate is None else computed + fate.wait[:, j]
            end = end + up[0][:, j] * self._slowed(Purpose.UPLOAD, clients, end)
            crashed = np.zeros(C, bool)
            if self._presences is not None and not self._presences.lasts:
                gone = np.full(C, np.inf)
                gone[comes] = self._presences.until(clients[comes], read[comes])
                crashed = comes & (gone <= end)
                end = np.where(crashed, np.maximum(gone, read), end)
                if fate is not None:
                    self._cut_short(clients, sends[:, j], crashed, gone, computed)
            left = there & ~comes
            noted[:, j] = np.where(
                left, earliest, np.where(np.isinf(back), np.nan, back)
            )
            note[:, j] = np.where(left, int(Incident.LEFT), int(Incident.REJOINED))
            fates[crashed, j] = int(Outcome.CRASHED)
            asks[:, j] = (asked > now) | ~comes
            times[:, :, j] = asked, read, started, computed, end
            self.last[clients], self._crashed[clients] = end, crashed
            self._was_lost[clients] = crashed | lost[:, j]
        asked, read, started, computed, end = (each.ravel() for each in times)
        own = asks.ravel()
        twice = np.zeros(C * n, bool) if fate is None else fate.twice.ravel()
        return JobArrays(
            client=np.repeat(clients, n),
            job=(first[:, None] + np.arange(n)).ravel(),
            read=read,
            end=end,
            read_version=np.full(C * n, NOT_READ),
            read_slot=np.zeros(C * n, np.int64),
            own=np.ones(C * n, bool) if reads else own,
            request=asked if reads else None,
            requests=own if reads else None,
            started=started,
            computed=computed,
            sends=sends.ravel(),
            twice=twice,
            outcome=fates.ravel(),
            noted=noted.ravel(),
            note=note.ravel(),
        )

    def _slowed(self, way: Purpose, clients: np.ndarray, times: np.ndarray) -> Any:
        """Returns by what the times of messages are multiplied that are sent then."""
        if not self._moments:
            return 1.0
        factor, sent = np.ones(clients.size), np.isfinite(times)
        for number, made in self._moments.items():
            if way in self._slowdowns[number].slows:
                factor[sent] *= made.of_each(clients[sent], times[sent])
        return factor

    def _idled(self, clients: np.ndarray, now: np.ndarray) -> np.ndarray:
        """Returns when clients have idled, who do so unless their job was lost."""
        if not self._idle.exists:
            return now
        found = now.copy()
        fresh = np.flatnonzero(~self._was_lost[clients] & np.isfinite(now))
        found[fresh] += self._idle_ahead.take(clients[fresh])
        return found

    def _cut_short(
        self,
        clients: np.ndarray,
        sends: np.ndarray,
        crashed: np.ndarray,
        gone: np.ndarray,
        computed: np.ndarray,
    ) -> None:
        """Counts the messages that clients have sent before they crashed."""
        for group, loss in enumerate(self._losses):
            if loss is not None:
                mine = crashed & (self._world.group_of[clients] == group)
                mine = np.flatnonzero(mine & (gone >= computed))
                since = (gone[mine] - computed[mine]) / loss.timeout
                sends[mine] = np.minimum(sends[mine], 1 + since.astype(np.int64))

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
        for by, slow in self._slow_jobs(clients, n):
            assert not isinstance(slow, AlternatingRenewal | SharedFactors)
            factor = np.where(slow, factor * by, factor)
        work = self._work(clients, n)
        return factor if work is None else factor * work

    def _work(self, clients: np.ndarray, n: int) -> Float[np.ndarray, "C n"] | None:
        """Returns the work of the samples of the next jobs, if it depends on them."""
        if self._world.work is None:
            return None
        of, first = self._world.work.of, self.jobs[clients].tolist()
        rows = zip(clients.tolist(), first, strict=True)
        return np.array([[of(c, job + j) for j in range(n)] for c, job in rows])

    def _slow_jobs(
        self, clients: np.ndarray, n: int
    ) -> list[
        tuple[float, Bool[np.ndarray, "C n"] | AlternatingRenewal | SharedFactors]
    ]:
        """Returns each slowdown's factor, and which of the next jobs are slow.

        Where that depends on their times, it is when clients are not, or the factors
        of all times.
        """
        job = self.jobs[clients][:, None] + np.arange(n)
        found: list[tuple[float, Any]] = []
        for number, slowdown in enumerate(self._slowdowns):
            if number in self._moments:
                if Purpose.COMPUTE in slowdown.slows:
                    found.append((1.0, self._moments[number]))
                continue
            slow = self._slow_times.get(number)
            if slow is None:
                slow = slowdown.slow_jobs(
                    clients, job, self._world.num_clients, self._world.streams
                )
            found.append((slowdown.factor, slow))
        return found
