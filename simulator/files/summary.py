"""Statistics of a timeline, counted while it goes or from its record.

`analysis.timelines.measures` takes all measures from them: counts of each staleness, of
outcomes, and the work, waiting and use of each client, after the start of the run and
in it. Memory grows with the clients and with the largest staleness, not with the
horizon: each value is counted, 8 bytes for each group of clients.
"""

from math import inf

import numpy as np
from jaxtyping import Bool, Float, Int

from .study.writing import Categorical
from .timeline import (
    NO_INCIDENTS,
    NO_WORKER,
    Chunk,
    Incidents,
    Jobs,
    Outcome,
    some,
    staleness,
)

UNDER_WAY = (Outcome.IN_FLIGHT, Outcome.BUFFERED)
"""Outcomes of jobs that outlast their run."""
NO_JOBS = Jobs(*(np.zeros(0, np.int64) for _ in Jobs._fields))
"""None at all."""
Until = Float[np.ndarray, " _"]
"""An instant, virtual seconds, or none."""
NEVER = np.zeros(0)
FEW = 8
"""Values for each that is counted, up to which all of them are counted in one sweep."""


class Start:
    """The start of a run: over when the jobs that filled the system have ended.

    Those are as many as can be in flight at once, of the jobs that read first, and any
    others that read at the same instant as the last of them.

    All clients start at once and read the initial state, so that the first
    contributions are hardly stale: of `n` jobs always in flight the mean over a whole
    run of `T` commits is some `n / T` of its value too low. Measures with a closed form
    therefore leave out the start. MSER-5 (White, Cobb and Spratt, 2000), which cuts
    where the rest varies least, was tried: it cuts too little off geometric staleness
    and nothing off long-tailed one (docs/theory.md has the numbers).

    Args:
        in_flight: Jobs that can be in flight at once, >= 1.

    Attributes:
        over: Its end by the jobs so far, virtual seconds; infinite before enough jobs
            have ended. It moves to the present when a job ends that read early, and
            into the past if that job was lost and its last event is there.
    """

    def __init__(self, in_flight: int) -> None:
        self._size, self.over = in_flight, inf
        self._read, self._ended = np.zeros((2, 0))  # ascending reads
        self._last = inf  # time of the last of the reads that count

    def add(self, jobs: Jobs, work: Bool[np.ndarray, " J"]) -> None:
        """Takes up jobs that have ended, or outlast the run; `work` of them count."""
        early = work & (jobs.read_time <= self._last)
        if not early.any():
            return
        mine = some(jobs, early)
        order = np.argsort(mine.read_time, kind="stable")
        # Into their places: selection among a million equal reads takes far longer.
        where = np.searchsorted(self._read, mine.read_time[order])
        self._read = np.insert(self._read, where, mine.read_time[order])
        self._ended = np.insert(self._ended, where, _ended(mine)[order])
        if self._read.size < self._size:
            return
        self._last = self._read[self._size - 1]
        kept = np.searchsorted(self._read, self._last, side="right")
        self._read, self._ended = self._read[:kept], self._ended[:kept]
        self.over = float(self._ended.max())


def _ended(jobs: Jobs) -> Float[np.ndarray, " J"]:
    """Returns the time at which each job was applied, or a lost one's last known time.

    Infinite for those under way.
    """
    known = (jobs.read_time, jobs.begun_time, jobs.computed_time, jobs.arrived_time)
    ended = np.where(
        np.isnan(jobs.applied_time), np.fmax.reduce(known), jobs.applied_time
    )
    ended[np.isin(jobs.outcome, UNDER_WAY)] = inf
    return ended


class Counts:
    """Statistics of a part of a run: of its start, or of the rest.

    Attributes:
        contributions: of each client.
        ages: Sum of the staleness of each client's contributions, commits.
        waiting: Seconds from arrival to application of each client's contributions.
        queued: Seconds from reads to the beginning of computing, likewise.
        busy: Seconds in which each client computes.
        counts: Contributions of each group of clients by their staleness.
        waits: How many of them have a known time of arrival and application.
        queues: How many have a known time of their read and beginning.
        waited_s, queued_s: Sums of the known times.
        made: Largest version that one of them is part of.
        latest_s: When the last of them was applied.
    """

    def __init__(self, num_clients: int, num_groups: int) -> None:
        self.contributions, self.ages = np.zeros((2, num_clients), np.int64)
        self.waiting, self.queued, self.busy = np.zeros((3, num_clients))
        self.counts = np.zeros((num_groups, 1024), np.int64)
        self.made, self.latest_s = 0, 0.0
        self.waits, self.queues, self.waited_s, self.queued_s = 0, 0, 0.0, 0.0

    def add(
        self,
        client: Int[np.ndarray, " n"],
        age: Int[np.ndarray, " n"],
        waiting: Float[np.ndarray, " n"],
        queued: Float[np.ndarray, " n"],
        commit: Int[np.ndarray, " n"],
        applied_s: Float[np.ndarray, " n"],
        group: Int[np.ndarray, " K"] | None,
    ) -> None:
        """Adds contributions; `group` is each client's, None if they are one."""
        _add(self.contributions, client)
        _add(self.ages, client, age)
        _add(self.waiting, client, waiting)
        _add(self.queued, client, queued)
        waited, was_queued = waiting[~np.isnan(waiting)], queued[~np.isnan(queued)]
        self.waits += waited.size
        self.queues += was_queued.size
        self.waited_s += float(waited.sum())
        self.queued_s += float(was_queued.sum())
        self.made = max(self.made, int(commit.max()))
        self.latest_s = max(self.latest_s, float(applied_s.max()))
        size = self.counts.shape[1]
        if (largest := int(age.max())) >= size:
            size = 2 ** (largest + 1).bit_length()
            self._widen(size)
        where = age if group is None else group[client].astype(np.int64) * size + age
        _add(self.counts.reshape(-1), where)

    def take(self, other: "Counts") -> None:
        """Adds all of another part, mostly of a few clients."""
        some = np.flatnonzero((other.contributions > 0) | (other.busy > 0))
        for name in ("contributions", "ages", "waiting", "queued", "busy"):
            getattr(self, name)[some] += getattr(other, name)[some]
        for name in ("waits", "queues", "waited_s", "queued_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.made = max(self.made, other.made)
        self.latest_s = max(self.latest_s, other.latest_s)
        size = other.counts.shape[1]
        if size > self.counts.shape[1]:
            self._widen(size)
        self.counts[:, :size] += other.counts

    def _widen(self, size: int) -> None:
        wider = np.zeros((self.counts.shape[0], size), np.int64)
        wider[:, : self.counts.shape[1]] = self.counts
        self.counts = wider


class Summary:
    """The statistics of one run.

    Args:
        num_clients: K.
        in_flight: Jobs that can be in flight at once.
        at_once: as in `timeline.staleness`.
        groups: Name of the group of each client, if they are divided.
        start_s: End of the start, virtual seconds, where it is known; by default it is
            worked out from the jobs.

    Attributes:
        over: End of the start, virtual seconds; infinite while it is not known, NaN if
            no steady state follows.
        of_start: Statistics of the start.
        later: Statistics after the start.
        misplaced: Whether jobs ended so late that contributions were counted on the
            wrong side of the start. The whole run must be counted once more, by
            `start_s`.
    """

    def __init__(
        self,
        num_clients: int,
        in_flight: int,
        at_once: int = 1,
        groups: Categorical | None = None,
        start_s: float | None = None,
    ) -> None:
        self._at_once, self._groups = at_once, groups
        self._group = None if groups is None else groups.codes
        self._start = Start(in_flight) if start_s is None else None
        self.over = inf if start_s is None else start_s
        self.misplaced = False
        self._latest = 0.0  # time up to which all has been counted
        self._sizes = num_clients, 1 if groups is None else len(groups.words)
        self.of_start, self.later = Counts(*self._sizes), Counts(*self._sizes)
        self._jobs, self._uploads, self._incidents, self._largest = np.zeros(
            (4, num_clients), np.int64
        )
        self._outcomes = np.zeros(len(Outcome), np.int64)
        self._missed = 0  # incidents of no client: starts of an open system
        self._computing = NO_JOBS  # not known yet to have computed in time

    def add(self, chunk: Chunk) -> None:
        """Counts the jobs and incidents of the next chunk."""
        # Jobs may have ended after the last row of their chunk.
        self.count(chunk.jobs, chunk.incidents, chunk.rows.time[-1:])

    def count(
        self, jobs: Jobs, incidents: Incidents = NO_INCIDENTS, until: Until = NEVER
    ) -> None:
        """Counts jobs in the order in which they ended; `until` is known to be over."""
        work = jobs.refresh == 0
        if self._start is not None:
            self._start.add(jobs, work)
            self._move(self._start.over)
        applied = some(jobs, work & (jobs.outcome == Outcome.APPLIED))
        self._contribute(applied)
        _add(self._jobs, jobs.client)
        _add(self._uploads, jobs.client, jobs.uploads)
        whose = incidents.client
        _add(self._incidents, whose[whose != NO_WORKER])
        self._missed += int(np.count_nonzero(whose == NO_WORKER))
        own = some(jobs, work)
        _add(self._outcomes, own.outcome)
        moments = np.concatenate([until, applied.applied_time])
        self._latest = max(self._latest, moments.max(initial=0))
        own = _joined(self._computing, own)
        computed = own.computed_time <= self._latest
        computed |= np.isnan(own.computed_time) & (own.outcome != Outcome.IN_FLIGHT)
        self._computing = some(own, ~computed)
        done = some(own, computed)
        self._compute(done, done.computed_time)

    def finish(self, virtual_s: float) -> None:
        """Counts the jobs that were running when the run ended."""
        rest = self._computing
        computing = np.isnan(rest.computed_time) & (rest.outcome == Outcome.IN_FLIGHT)
        computed = np.where(computing, virtual_s, rest.computed_time)
        self._compute(rest, np.minimum(computed, virtual_s))
        before, after = (
            int(part.contributions.sum()) for part in (self.of_start, self.later)
        )
        if not np.isfinite(self.over) or after < max(before, 1):
            # No steady state follows: all of the run is measured.
            self.over = float("nan")
            self.later.take(self.of_start)
            self.of_start = Counts(*self._sizes)

    def entry(self) -> dict[str, object]:
        """Returns the manifest's entry on the run."""
        outcomes = zip(Outcome, self._outcomes.tolist(), strict=True)
        return {
            "start_s": None if np.isnan(self.over) else self.over,
            "start_commits": self.of_start.made,
            "first_s": self.of_start.latest_s,
            "last_s": max(self.of_start.latest_s, self.later.latest_s),
            "outcomes": {outcome.name: count for outcome, count in outcomes if count},
            "waiting_s": self.later.waited_s,
            "waits": self.later.waits,
            "queued_s": self.later.queued_s,
            "queues": self.later.queues,
            "missed": self._missed,
        }

    def clients(self, run: int, virtual_s: float) -> dict[str, np.ndarray]:
        """Returns the table `clients` of a run that has ended."""
        size, later = self._jobs.size, self.later
        applied = later.contributions + self.of_start.contributions
        since = 0.0 if np.isnan(self.over) else self.over
        with np.errstate(invalid="ignore"):
            return {
                "run": np.full(size, run, np.int32),
                "client": np.arange(size, dtype=np.int32),
                "num_jobs": self._jobs,
                "num_applied": applied,
                "staleness_mean": (later.ages + self.of_start.ages) / applied,
                "staleness_max": self._largest,
                "steady_contributions": later.contributions,
                "steady_staleness_mean": later.ages / later.contributions,
                "steady_waiting_mean": later.waiting / later.contributions,
                "steady_queued_mean": later.queued / later.contributions,
                "utilisation": later.busy / ((virtual_s - since) or np.nan),
                "uploads": self._uploads,
                "incidents": self._incidents,
            }

    def ages(self, run: int) -> dict[str, np.ndarray | Categorical]:
        """Returns the table `ages` of a run that has ended."""
        pieces = []
        for is_start, part in ((False, self.later), (True, self.of_start)):
            group, age = np.nonzero(part.counts)
            start = np.full(age.size, is_start)
            pieces.append((group, start, age, part.counts[group, age]))
        group, start, age, count = map(np.concatenate, zip(*pieces, strict=True))
        columns: dict[str, np.ndarray | Categorical] = {
            "run": np.full(age.size, run, np.int32)
        }
        if self._groups is not None:
            codes = group.astype(np.int32)
            columns["client_group"] = Categorical(codes, self._groups.words)
        return columns | {"start": start, "staleness": age, "count": count}

    def again(self) -> "Summary | None":
        """Returns a summary that has the end of the start, if that was found late."""
        if not self.misplaced:
            return None
        return Summary(self._sizes[0], 1, self._at_once, self._groups, self.over)

    def _move(self, over: float) -> None:
        """Moves the end of the start, mostly to the present."""
        if over == self.over:
            return
        self.misplaced |= over < self._latest
        self.over = over
        self.of_start.take(self.later)
        self.later = Counts(*self._sizes)

    def _contribute(self, applied: Jobs) -> None:
        after = applied.applied_time > self.over
        self._count(self.later, some(applied, after))
        self._count(self.of_start, some(applied, ~after))

    def _count(self, part: Counts, jobs: Jobs) -> None:
        if not jobs.client.size:
            return
        age = staleness(jobs.commit - 1, jobs.read_version, self._at_once)
        np.maximum.at(self._largest, jobs.client, age)
        waiting = jobs.applied_time - jobs.arrived_time
        queued = jobs.begun_time - jobs.read_time
        commit, applied_s = jobs.commit, jobs.applied_time
        part.add(jobs.client, age, waiting, queued, commit, applied_s, self._group)

    def _compute(self, jobs: Jobs, computed: Float[np.ndarray, " J"]) -> None:
        """Adds the time of computing; NaN adds nothing."""
        whole = np.fmax(computed - jobs.begun_time, 0)
        later = np.fmax(computed - np.maximum(jobs.begun_time, self.over), 0)
        _add(self.later.busy, jobs.client, later)
        if (rest := whole - later).any():
            _add(self.of_start.busy, jobs.client, rest)


def _joined(first: Jobs, second: Jobs) -> Jobs:
    if not first.client.size:
        return second
    return Jobs(*map(np.concatenate, zip(first, second, strict=True)))


def _add(
    into: np.ndarray, where: Int[np.ndarray, " n"], values: np.ndarray | int = 1
) -> None:
    """Adds values, or ones, at places of an array, of which some occur repeatedly."""
    if not where.size:
        return
    if into.size > FEW * where.size:
        np.add.at(into, where, values)
    elif isinstance(values, int):
        into += np.bincount(where, minlength=into.size)
    else:
        found = np.bincount(where, values, minlength=into.size)
        into += found.astype(into.dtype)
