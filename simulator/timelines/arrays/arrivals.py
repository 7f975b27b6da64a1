"""Clients who continue as soon as their contribution has arrived.

Their times do not depend on each other, so they are computed first. One sort then gives
the order of all events, and counts give the version that each job reads.
"""

from collections.abc import Iterator
from math import inf

import numpy as np
from jaxtyping import Bool, Int

from ...files.timeline import (
    NO_COMMIT,
    NO_INCIDENTS,
    NO_SLOT,
    NO_WORKER,
    Chunk,
    Incidents,
    Jobs,
    Kind,
    Outcome,
    Rows,
    StopReason,
)
from ...world.protocol import Arrivals
from ...world.recorders.arrays import server_rows
from ...world.world import World
from ..base import RunTimeline
from . import blocks
from .blocks import BLOCK, FIRST, STUCK, Block, Limits, standstill
from .events import END, EventOrder, Events, Made, window_ends, within_bound
from .job_arrays import LATER, NOT_READ, JobArrays, Registers, together
from .paths import Paths


class ArrivalsPlayer:
    """The timeline of a run whose clients do not wait."""

    def __init__(self, timeline: RunTimeline, world: World, rule: Arrivals) -> None:
        self._world, self._rule = world, rule
        self._paths = Paths(world)
        self._limits = Limits(timeline, world)
        self._registers = Registers(timeline.num_registers)
        # Where each version is read by the client alone that has made it, it has that
        # client's register; the first version, which all read, has one besides.
        self._alone = rule == Arrivals() and self._paths.restarts_at_once
        self._version = self._contributions = 0
        self._order = EventOrder(world.num_clients)
        self._since: float = -1  # time up to which everything has happened
        self._window = inf  # end of the window that is open
        self._buffer: JobArrays | None = None

    def blocks(self) -> Iterator[Block]:
        """Yields the timeline, piece by piece.

        Raises:
            ScenarioError: a law gave an impossible duration, or time does not advance.
        """
        paths, K = self._paths, self._world.num_clients
        size = max(BLOCK, min(128 * K, 4 * BLOCK), K // 4)
        work = paths.extend(np.arange(K), min(FIRST, -(-self._left(size) // K)))
        # Half of the clients have done what is known by then.
        until = float(np.median(paths.last))
        while True:
            work, until = self._known(work, until, size)
            chunk, ended, work = self._block(work, until)
            yield chunk, ended
            if chunk.stop is not None:
                return
            if until > 0:
                until += self._left(size) * until / max(self._contributions, 1)
            # At least one more job ends.
            until = float(max(until, paths.last.min()))

    def _left(self, size: int) -> int:
        """Returns about how many contributions are to be put in order next."""
        commits = self._limits.turns - self._version
        left = self._limits.contributions - self._contributions
        left = min(left, commits * self._rule.size)
        return min(size, max(FIRST, left * 21 // 20))

    def _known(
        self, work: JobArrays, until: float, size: int
    ) -> tuple[JobArrays, float]:
        """Works out jobs until all are known up to a time, or to an earlier one.

        Returns:
            All jobs that have not ended, one client's after another's; and the time.
        """
        paths, parts, made = self._paths, [work], 0
        K, most = self._world.num_clients, 4 * size
        until = min(until, self._limits.time)
        if self._world.tick is not None:
            until = int(until)
        while (behind := np.flatnonzero(paths.last <= until)).size:
            least = paths.last.min()
            earlier = (
                np.nextafter(least, -inf) if self._world.tick is None else least - 1
            )
            if earlier > self._since:
                if made > most:
                    until = earlier
                    break
            elif made > STUCK + 100 * K:
                raise standstill(made, self._world.seconds([least])[0])
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = paths.last[behind] / paths.jobs[behind]
                needed = np.ceil((until - paths.last[behind]) / mean) + 1
            # Where no job has taken time, as many again: a standstill is seen soon.
            needed = np.where(mean > 0, needed, paths.jobs[behind] + 1)
            # Powers of two, so that few different numbers are worked out at a time.
            cap = max(1, min(most // behind.size, size))
            powers = np.ceil(np.log2(np.clip(needed, 1, cap))).astype(np.int64)
            for power in np.unique(powers).tolist():
                some = behind[powers == power]
                parts.append(paths.extend(some, 2**power))
                made += some.size * 2**power
        if len(parts) == 1:
            return work, until
        known = together(parts)
        return known.at(np.argsort(known.client, kind="stable")), until

    def _block(
        self, work: JobArrays, until: float
    ) -> tuple[Chunk, Int[np.ndarray, " J"], JobArrays]:
        """Puts in order what happens until a time; returns it, and the jobs left."""
        events = self._order.until(work, self._since, until)
        accepts, read_version, rows = self._judge(work, events, until)
        reason, now = None, until
        if (end := self._limits.first(*self._counts(rows))) is not None:
            row, reason = end
            rows = Made(*(column[: row + 1] for column in rows))
            now = rows.time[row]
        elif until == self._limits.time:
            reason = StopReason.TIME
        last = LATER - 1
        if end is not None:
            last = (rows.at[-1] - 1) // 2
        place = np.flatnonzero(events.kind == END)
        place = place[: np.searchsorted(place, last, side="right")]
        ended = np.full(work.client.size, LATER)
        ended[events.job[place]] = 2 * place + 1
        self._read(work, events, rows, read_version, ended, last)
        own = work.at(events.job[place])
        accepted = accepts[place]
        jobs, job_rows = self._jobs(own, 2 * place + 1, accepted, rows)
        over, seen = ended < LATER, work.read_version != NOT_READ
        incidents = NO_INCIDENTS
        if work.outcome is not None or self._rule.bound is not None:
            incidents = self._incidents(work, own, accepted, now)
        if reason is not None:
            left = work.at(seen & ~over)
            parts = [jobs, blocks.under_way(self._world, left, now)]
            if self._buffer is not None:
                parts.append(self._unapplied(self._buffer))
            jobs = Jobs(*map(np.concatenate, zip(*parts, strict=True)))
            rest = np.full(jobs.client.size - job_rows.size, rows.at.size)
            job_rows = np.concatenate([job_rows, rest])
        chunk = Chunk(self._build(own, rows), jobs, reason, incidents)
        self._since = until
        self._contributions += int((rows.end >= 0).sum())
        self._version += int(rows.commits.sum())
        return chunk, job_rows, work.at(~over)

    def _incidents(
        self,
        work: JobArrays,
        own: JobArrays,
        accepted: Bool[np.ndarray, " E"],
        now: float,
    ) -> Incidents:
        """Returns what went wrong in a block, up to its end or the run's."""
        found = [blocks.ended_badly(self._world, own, accepted)]
        if work.sends is not None:
            arrives = (work.end > self._since) & (work.end <= now)
            arrived = work.at(arrives & (work.read_version != NOT_READ))
            found.append(blocks.repeated(self._world, arrived))
        return blocks.in_order_of_time(found)

    def _read(
        self,
        work: JobArrays,
        events: Events,
        rows: Made,
        read_version: Int[np.ndarray, " J"],
        ended: Int[np.ndarray, " J"],
        last: int,
    ) -> None:
        """Notes which versions jobs have read, and which registers hold them."""
        was_read = work.read_version != NOT_READ
        reads = (events.read_at <= last) & ~was_read
        old = np.flatnonzero(was_read & (ended < LATER))
        new = np.flatnonzero(reads)
        work.read_version[new] = read_version[new]
        if self._alone:
            work.read_slot[new] = np.where(work.job[new] == 0, 0, work.client[new] + 1)
            return
        number = work.read_version[new] - self._version
        self._slots = self._registers.assign(
            rows.at[rows.commits],
            number,
            ended[new],
            work.read_slot[old],
            ended[old],
        )
        work.read_slot[new] = self._slots[number]

    def _judge(
        self, work: JobArrays, events: Events, until: float
    ) -> tuple[Bool[np.ndarray, " E"], Int[np.ndarray, " J"], Made]:
        """Says which arrivals are accepted, what each job reads, and the rows made."""
        rule = self._rule
        arrives = events.kind == END
        if work.outcome is not None:
            arrives &= work.outcome[events.job] == Outcome.APPLIED
        windows: list[float] = []
        if rule.bound is not None:
            arrives = commits = within_bound(
                work, events, arrives, self._version, rule.bound
            )
        elif rule.window is not None:
            commits = np.zeros(arrives.size, bool)
            windows, self._window = window_ends(
                events.time[arrives].tolist(), rule.window, self._window, until
            )
        elif rule.size == 1:
            commits = arrives
        else:
            waiting = 0 if self._buffer is None else self._buffer.client.size
            number = waiting + np.cumsum(arrives)
            commits = arrives & (number % rule.size == 0)
        version = self._version + np.cumsum(commits)
        if windows:
            # A window ends after everything else of that instant.
            version += np.searchsorted(np.array(windows), events.time)
        at = np.concatenate([version, [self._version]])
        known = events.read_at < LATER
        read_version = np.full(work.client.size, NOT_READ)
        read_version[known] = at[events.read_at[known]]
        return arrives, read_version, self._rows(events, arrives, commits, windows)

    def _rows(
        self,
        events: Events,
        accepted: Bool[np.ndarray, " E"],
        makes: Bool[np.ndarray, " E"],
        windows: list[float],
    ) -> Made:
        place = np.flatnonzero(accepted)
        at, time = 2 * place + 1, events.time[place]
        number = np.cumsum(events.kind == END)[place] - 1
        commits = makes[place]
        if windows:
            ends_at = np.array(windows)
            after = 2 * np.searchsorted(events.time, ends_at, side="right")
            order = np.argsort(np.concatenate([at, after]), kind="stable")
            none = np.full(after.size, -1)
            at, time, number, commits = (
                np.concatenate(columns)[order]
                for columns in (
                    (at, after),
                    (time, ends_at),
                    (number, none),
                    (commits, none < 0),
                )
            )
        return Made(at, time, number, commits, self._version + np.cumsum(commits))

    def _counts(self, rows: Made) -> tuple[np.ndarray, np.ndarray]:
        return rows.version, self._contributions + np.cumsum(rows.end >= 0)

    def _jobs(
        self,
        own: JobArrays,
        at: Int[np.ndarray, " J"],
        accepted: Bool[np.ndarray, " J"],
        rows: Made,
    ) -> tuple[Jobs, Int[np.ndarray, " J"]]:
        """Returns jobs of which it is known what became, and the rows by then.

        Args:
            own: Jobs that ended in this block, in order.
            at: Where each ended, as `Made.at`.
            accepted: Whether each is applied, or put in the buffer.
            rows: Rows of the block.
        """
        outcome = np.where(accepted, int(Outcome.APPLIED), int(Outcome.REJECTED))
        if own.outcome is not None:
            outcome = np.where(own.outcome == Outcome.APPLIED, outcome, own.outcome)
        if self._rule.size == 1 and self._rule.window is None:
            row = np.cumsum(accepted)
            commit = np.where(accepted, self._version + row, NO_COMMIT)
            return blocks.ended(self._world, own, outcome, commit, own.end), row
        waiting = 0
        if self._buffer is not None:
            # What was in the buffer before comes first.
            waiting = self._buffer.client.size
            own = together([self._buffer, own])
            at = np.concatenate([np.full(waiting, -1), at])
            accepted = np.concatenate([np.ones(waiting, bool), accepted])
            outcome = np.concatenate([np.zeros(waiting, np.int64), outcome])
        # The first commit that comes with or after a contribution applies it.
        commit_rows = np.flatnonzero(rows.commits)
        which = np.searchsorted(rows.at[commit_rows], at)
        kept = accepted & (which == commit_rows.size)
        self._buffer = own.at(kept) if kept.any() else None
        shown = np.flatnonzero(~kept)
        own, at, accepted = own.at(shown), at[shown], accepted[shown]
        outcome, its = outcome[shown], commit_rows[which[shown][accepted]]
        commit, applied = np.full(at.size, NO_COMMIT), own.end.copy()
        by, row = at.copy(), np.searchsorted(rows.at, at, side="right")
        commit[accepted], applied[accepted] = rows.version[its], rows.time[its]
        by[accepted], row[accepted] = rows.at[its], its + 1
        # The job whose arrival makes a version comes first, then those in the buffer.
        order = np.lexsort((at, by != at, by))
        columns = (column[order] for column in (outcome, commit, applied))
        return blocks.ended(self._world, own.at(order), *columns), row[order]

    def _unapplied(self, buffer: JobArrays) -> Jobs:
        size = buffer.client.size
        outcome = np.full(size, int(Outcome.BUFFERED))
        return blocks.ended(
            self._world, buffer, outcome, np.full(size, NO_COMMIT), None
        )

    def _build(self, own: JobArrays, rows: Made) -> Rows:
        written = np.full(rows.at.size, NO_SLOT)
        written[rows.commits] = own.client + 1 if self._alone else self._slots[1:]
        columns = own.client, own.job, own.read_version, own.read_slot
        if rows.end.size != own.client.size or self._rule.window is not None:
            # A row without an arrival, -1, has what is put behind the others.
            columns = (np.append(c, NO_WORKER)[rows.end] for c in columns)
        worker, job, read_version, read_slot = columns
        kind = np.where(rows.commits, int(Kind.COMMIT), int(Kind.CONTRIBUTE))
        return server_rows(
            time=self._world.seconds(rows.time),
            kind=kind,
            worker=worker[:, None],
            job=job[:, None],
            version=rows.version - rows.commits,
            read_version=read_version[:, None],
            read_slot=read_slot[:, None],
            write_slot=written,
            round=np.zeros(rows.at.size, np.int64),
        )
