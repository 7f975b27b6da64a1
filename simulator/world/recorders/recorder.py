"""Writes a timeline while the world is played: versions, registers, jobs and rows.

Rows and jobs are appended to flat lists of integers, the cheapest thing that Python
does per event, and turned into arrays a chunk at a time.
"""

from collections.abc import Iterator, Sequence
from math import inf, nextafter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...files.timeline import (
    NO_COMMIT,
    NO_SLOT,
    Incident,
    Incidents,
    Jobs,
    Kind,
    Outcome,
    Rows,
)
from ...parts.errors import UserError
from .arrays import JOB, NEVER, TIMES, jobs_of, rows_of

if TYPE_CHECKING:
    from ..world import Timing, World

Moment = int | float
"""A time of the clock, in its unit, or `NEVER`."""
Waiting = tuple[tuple[Moment, ...], int, int, int, int]
"""A job in the server's buffer: when it was read, started, computed, sent and arrived;
its worker, number, version read and uploads."""


class Reading(NamedTuple):
    """The reads of a job.

    Attributes:
        job: Number of the worker's job.
        read_time: Time of its read, in the clock's unit; `NEVER` without a job.
        read_version: Version that it has read, commits.
        read_slot: Register of that version; `NO_SLOT` where nothing can come of it.
    """

    job: int
    read_time: Moment
    read_version: int
    read_slot: int


def _misused(worker: int, what: str) -> UserError:
    return UserError(
        f"protocol must end each job once, by commit, contribute or lose, before the "
        f"client's next one begins (cycle.again), got client {worker + 1} that {what}"
    )


_ROW = 5  # kind, version, write_slot, round, workers
_WORK = 4  # worker, job, read_version, read_slot


class Recorder:
    """The timeline of one run, as it grows.

    A version is given a register when its first reader reads it; since that is before
    the next commit, the row that made it is still the last one.

    Args:
        world: "World" whose clients are the workers.
        width: Most workers of a row, `W`.
    """

    def __init__(self, world: "World", width: int) -> None:
        num_workers = world.num_clients
        self._world, self._timing = world, world.timing
        world.recorder = self
        self.width = width
        self.version = 0
        self.num_rows = 0
        self.num_contributions = 0
        self.num_other_uploads = 0
        self._row_times: list[Moment] = []
        self._rows: list[int] = []
        self._work: list[int] = []
        self._job_times: list[Moment] = []
        self._jobs: list[int] = []
        self._next_job = [0] * num_workers
        self._job = [0] * num_workers
        self._read_time: list[Moment] = [NEVER] * num_workers
        self._read_version = [0] * num_workers
        self._read_slot = [0] * num_workers
        self._kept = 1  # rows that a chunk keeps back, since they may change
        self._slot = 0  # register of the current version, NO_SLOT until it is read
        self._readers = [0]
        self._free: list[int] = []
        self._buffered: list[Waiting] = []
        self._held: list[Waiting] = []
        self._incidents: list[tuple[float, int, Incident, int]] = []
        self.notes_reads = False
        """Whether a job of which nothing comes has a row, if its client got a model."""
        self.gathers = True
        """Whether the protocol says that contributions gather."""

    @property
    def turns(self) -> int:
        """Rows that rounds are counted in so far: commits, and averagings of all."""
        return self.version

    @property
    def num_buffered(self) -> int:
        """Contributions in the server's buffer."""
        return len(self._buffered)

    @property
    def _now(self) -> Moment:
        return self._world.env._now

    def read(self, worker: int) -> int:
        """Begins the worker's next job with a read of the current version.

        Returns:
            The job's number.

        Raises:
            UserError: A protocol begins it before the worker's last job has ended.
        """
        if self._read_time[worker] != NEVER:
            raise _misused(worker, "begins a job before its last one has ended")
        slot = self._slot
        if slot == NO_SLOT:
            slot = self._slot = self._reserve()
        self._readers[slot] += 1
        job = self.new_job(worker)
        self._job[worker] = job
        self._read_time[worker] = self._now
        self._read_version[worker] = self.version
        self._read_slot[worker] = slot
        return job

    def new_job(self, worker: int) -> int:
        """Returns the number of the worker's next job, which reads nothing."""
        job = self._next_job[worker]
        self._next_job[worker] = job + 1
        return job

    def current_job(self, worker: int) -> int:
        """Returns the number of the job that the worker is at."""
        return self._job[worker]

    def current(self, worker: int) -> Reading:
        """Returns the reads of the worker's current job."""
        return Reading(
            self._job[worker],
            self._read_time[worker],
            self._read_version[worker],
            self._read_slot[worker],
        )

    def _set(self, worker: int, reading: Reading) -> None:
        """Makes a job of the worker, which may have several, its current one."""
        self._job[worker], self._read_time[worker] = reading.job, reading.read_time
        self._read_version[worker] = reading.read_version
        self._read_slot[worker] = reading.read_slot

    def commit(self, workers: Sequence[int], round_: int = 0) -> None:
        """Applies the current jobs of some workers together: a new version."""
        version, time = self.version, self._now
        current, readers = self._slot, self._readers
        for worker in workers:
            if self._read_time[worker] == NEVER:
                raise _misused(worker, "is in a commit, but its job has ended before")
            slot = self._read_slot[worker]
            read_version = self._read_version[worker]
            job = self._job[worker]
            self._work += (worker, job, read_version, slot)
            timing = self._timing[worker]
            if timing is None:
                read_time = self._read_time[worker]
                self._job_times += (read_time, read_time, time, time, time, time)
                uploads = 1
            else:
                *times, uploads = timing
                self._job_times += (self._read_time[worker], *times, time)
                self._timing[worker] = None
            self._jobs += (worker, job, 0, read_version, version + 1, 0, uploads)
            self._read_time[worker] = NEVER
            readers[slot] -= 1
            if not readers[slot] and slot != current:
                self._free.append(slot)
        if current != NO_SLOT and not readers[current]:
            self._free.append(current)
        self._slot = NO_SLOT
        self._row_times.append(time)
        self._rows += (0, version, NO_SLOT, round_, len(workers))
        self.version = version + 1
        self.num_rows += 1
        self.num_contributions += len(workers)
        if self._buffered:
            self._apply_buffered(time)

    def arrive(self, worker: int) -> None:
        """Notes that a contribution has arrived which is not applied at once."""
        if self._world.is_plain:
            self._timing[worker] = self._timing_of(worker)

    def contribute(self, worker: int, round_: int = 0, *, held: bool = False) -> None:
        """Puts the worker's current job into the server's buffer: no new version.

        A `held` contribution is not applied before it is released.
        """
        if not self.gathers:
            raise UserError(
                "a protocol that calls contribute must have gathers return True; "
                "without, its updates are added up, not averaged"
            )
        self._settle()  # before the register that this job has read may be free
        slot, job = self._read_slot[worker], self._job[worker]
        read_version = self._read_version[worker]
        self._work += (worker, job, read_version, slot)
        *moments, uploads = self._timing_of(worker)
        times = self._read_time[worker], *moments
        into = self._held if held else self._buffered
        into.append((times, worker, job, read_version, uploads))
        self._leave(worker)
        self._add_row(Kind.CONTRIBUTE, 1, round_)
        self.num_contributions += 1

    def release_held(self) -> None:
        """Lets the next commit apply the held contributions."""
        self._buffered += self._held
        self._held = []

    def lose(self, worker: int, outcome: Outcome) -> None:
        """Ends the worker's current job, of which nothing comes.

        A rejected job is an incident as well; the world writes down the others.
        """
        time = self._now
        started, computed, sent, arrived, uploads = self._timing_of(worker)
        if outcome == Outcome.REJECTED:
            self.note(time, worker, Incident.REJECTED)
        else:
            arrived, uploads = NEVER, self._sends_so_far(worker)
            if started > time:
                started = NEVER
            if computed > time:
                computed, sent = NEVER, NEVER
        job, read_version = self._job[worker], self._read_version[worker]
        read_time = self._read_time[worker]
        times = (read_time, started, computed, sent, arrived, NEVER)
        self._add_job(worker, job, read_version, times, outcome, uploads)
        if self.notes_reads and started != NEVER:
            self._settle()  # before the register that this job has read may be free
            self._work += (worker, job, read_version, self._read_slot[worker])
            self._add_row(Kind.READ, 1)
        self._leave(worker)

    def note(self, time: float, worker: int, what: Incident, count: int = 1) -> None:
        """Writes down an incident, at a time of the clock that may be to come."""
        seconds = float(self._world.seconds([time])[0])
        self._incidents.append((seconds, worker, what, count))

    def read_time(self, worker: int) -> Moment:
        """Returns when the worker's current job read, in the clock's unit."""
        return self._read_time[worker]

    def read_version(self, worker: int) -> int:
        """Returns the version that the worker's current job has read."""
        return self._read_version[worker]

    def staleness(self, worker: int) -> int:
        """Returns the commits since the worker's current job has read."""
        return self.version - self._read_version[worker]

    def _leave(self, worker: int) -> None:
        if self._read_time[worker] == NEVER:
            raise _misused(worker, "ends a job that has ended before")
        slot = self._read_slot[worker]
        self._read_time[worker], self._timing[worker] = NEVER, None
        self._readers[slot] -= 1
        if not self._readers[slot] and slot != self._slot:
            self._free.append(slot)

    def _apply_buffered(self, time: float) -> None:
        applied, commit = Outcome.APPLIED, self.version
        for times, worker, job, read, uploads in self._buffered:
            moments = (*times, time)
            self._add_job(worker, job, read, moments, applied, uploads, commit)
        self._buffered.clear()

    def _add_job(
        self,
        worker: int,
        job: int,
        read_version: int,
        times: tuple[Moment, ...],
        outcome: Outcome,
        uploads: int,
        commit: int = NO_COMMIT,
    ) -> None:
        """Writes down a job; its times are those of `jobs_of`."""
        self._job_times += times
        self._jobs += (worker, job, 0, read_version, commit, outcome, uploads)

    def settle(self) -> None:
        """Finishes the last row: a chunk then has all rows so far."""
        self._settle()
        self._kept = 0

    def _settle(self) -> None:
        """Gives the current version a register, while the row that made it is last."""
        if self._slot == NO_SLOT:
            self._slot = self._reserve()

    def _add_row(self, kind: Kind, workers: int, round_: int = 0) -> None:
        self._row_times.append(self._now)
        self._rows += (kind, self.version, NO_SLOT, round_, workers)
        self.num_rows += 1

    def _reserve(self) -> int:
        """Gives the last row's version a register."""
        slot = self._free.pop() if self._free else len(self._readers)
        if slot == len(self._readers):
            self._readers.append(0)
        self._set_write_slot(slot)
        return slot

    def _set_write_slot(self, slot: int) -> None:
        self._rows[2 - _ROW] = slot

    def ended(self, first: int) -> Iterator[tuple[list[int], list[Moment]]]:
        """Yields jobs that have ended and were not taken, from one of them on.

        Each as client, job, whether it is a refresh, read version, commit, outcome and
        uploads; and when it was read, started, computed, sent, arrived and applied.
        """
        for number in range(first, len(self._jobs) // JOB):
            entry = self._jobs[number * JOB : (number + 1) * JOB]
            yield entry, self._job_times[number * TIMES : (number + 1) * TIMES]

    def latest(self, number: int) -> Rows:
        """Returns the latest rows; whether the last one's version is read is open."""
        first = self.num_rows - number
        head = np.array(self._rows[first * _ROW :], np.int64).reshape(-1, _ROW)
        begin = len(self._work) - int(head[:, 4].sum()) * _WORK
        work = np.array(self._work[begin:], np.int64).reshape(-1, _WORK)
        times = self._world.seconds(self._row_times[first:])
        return rows_of(head, work, times, self.width)

    def take(self, *, final: bool = False) -> tuple[Rows, Jobs]:
        """Hands over the finished rows and jobs, and forgets them.

        The last row stays until it is known whether its version is read, unless the
        run is over (`final`); then jobs under way are handed over as well.

        Args:
            final: Whether nothing more will happen.
        """
        keep = 0 if final or not self.num_rows else self._kept
        self._kept = 1
        number = self.num_rows - keep
        head = np.array(self._rows, np.int64).reshape(-1, _ROW)[:number]
        jobs = int(head[:, 4].sum())
        work = np.array(self._work[: jobs * _WORK], np.int64).reshape(-1, _WORK)
        times = self._world.seconds(self._row_times[:number])
        rows = rows_of(head, work, times, self.width)
        self._row_times = self._row_times[number:]
        self._rows = self._rows[number * _ROW :]
        self._work = self._work[jobs * _WORK :]
        self.num_rows = keep
        if final:
            self._add_unfinished()
        table, moments = self._jobs, self._world.seconds(self._job_times)
        self._jobs, self._job_times = [], []
        return self._finished(rows), jobs_of(table, moments)

    def incidents(self, until: float, *, final: bool = True) -> Incidents:
        """Hands over the incidents up to a time in virtual seconds, in order.

        Args:
            until: Virtual seconds.
            final: Whether nothing more can happen at that instant; else its incidents
                are kept back, since others may come before them in order.
        """
        last = until if final else nextafter(until, -inf)
        done = sorted(entry for entry in self._incidents if entry[0] <= last)
        self._incidents = [entry for entry in self._incidents if entry[0] > last]
        time, client, what, count = zip(*done, strict=True) if done else ((),) * 4
        whole = (np.array(column, np.int32) for column in (client, what, count))
        return Incidents(np.array(time, np.float64), *whole)

    def gone(self) -> int:
        """Counts the clients that never come again, or are known to leave later."""
        later = {c for _, c, what, _ in self._incidents if what is Incident.LEFT}
        since, now = self._world.present_since, self._now
        everyone = range(self._world.num_clients)
        return sum(each in later or since(each, now) == inf for each in everyone)

    def _timing_of(self, worker: int) -> "Timing":
        """Returns the timing of a job that ends.

        Where nothing comes between its read and its arrival, it is computed and sent
        when it arrives.
        """
        time, timing = self._now, self._timing[worker]
        return timing or (self._read_time[worker], time, time, time, 1)

    def _so_far(self, worker: int) -> "Timing":
        """Returns the timing of a job under way; the world may know more of it."""
        timing, now = self._timing[worker], self._now
        uploads = self._sends_so_far(worker)
        if timing is None:
            return self._read_time[worker], NEVER, NEVER, NEVER, 0
        started, computed, sent, arrived, _ = timing
        started = started if started <= now else NEVER
        if computed > now:
            return started, NEVER, NEVER, NEVER, 0
        if not uploads:
            return started, computed, NEVER, NEVER, 0
        return started, computed, sent, arrived if arrived <= now else NEVER, uploads

    def _sends_so_far(self, worker: int) -> int:
        """Returns how often a worker has sent the message of the job that it is at."""
        timing, now, world = self._timing[worker], self._now, self._world
        if timing is None or timing[2] > now or not world.budget.has_sent(worker):
            return 0
        return world.losses.sends(worker, timing[4], now - timing[2])

    def _finished(self, rows: Rows) -> Rows:
        return rows

    def _add_unfinished(self) -> None:
        """Writes down the jobs that are under way, or in the server's buffer."""
        for worker, read_time in enumerate(self._read_time):
            if read_time != NEVER:
                *moments, uploads = self._so_far(worker)
                job, version = self._job[worker], self._read_version[worker]
                times = (read_time, *moments, NEVER)
                self._add_job(worker, job, version, times, Outcome.IN_FLIGHT, uploads)
        waiting = Outcome.BUFFERED
        for times, worker, job, read, uploads in (*self._buffered, *self._held):
            self._add_job(worker, job, read, (*times, NEVER), waiting, uploads)
