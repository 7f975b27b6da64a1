"""Cuts a timeline where its model is evaluated; the records that come back of it."""

from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from ..files.timeline import (
    NO_SLOT,
    NO_WORKER,
    TIMED,
    Chunk,
    Jobs,
    Rows,
    StopReason,
    effects,
    further_uploads,
)
from ..parts.expressions import up
from ..scenario.scenario import check_evaluations
from .setup import RunSetup


class EvaluationPoint(NamedTuple):
    """A point at which the model is evaluated.

    Attributes:
        time: virtual seconds.
        commits: made so far.
        contributions: applied so far.
        other_uploads: uploads so far that were no contributions: those forced by a
            bound, and models for averagings.
    """

    time: float
    commits: int
    contributions: int
    other_uploads: int


class Segment(NamedTuple):
    """Successive rows of one run, none of them beyond the next evaluation.

    Attributes:
        rows: Rows of the timeline.
        samples: Sample ids of the rows.
        keep_slot: Register for the version before each row, `NO_SLOT` if no worker
            reads it.
        chunk: Chunk that these rows complete; None if they complete none.
        point: Evaluation that follows; None if none does.
        probed: Whether the first row's numbers will be saved.
        stop: Reason of the run's end after these rows; None if it continues.
        asks: Whether the world waits for its results before it continues.
    """

    rows: Rows
    samples: Int[np.ndarray, "T V S"]
    keep_slot: Int[np.ndarray, " T"]
    chunk: Chunk | None
    point: EvaluationPoint | None
    probed: bool
    stop: StopReason | None
    asks: bool = False


class RowStream:
    """A run's rows, piece by piece.

    The model is evaluated before the first row, at the end, and as often as the
    scenario requires.

    Args:
        setup: The facts of the run.
        chunks: Chunks of its timeline; the last one has the reason of the run's end.

    Attributes:
        ended: Whether nothing is left.
        taken: Rows so far, and pieces without rows.
    """

    def __init__(self, setup: RunSetup, chunks: Iterator[Chunk]) -> None:
        self._timeline, self._chunks = setup.timeline, chunks
        self._sampler = setup.sampler
        self._every = setup.scenario.evaluate.every
        self._unit = next(unit for unit, period in self._every if period is not None)
        probe = setup.scenario.probe
        self._probe = None if probe is None else probe.every
        self._probes: deque[int] = deque()
        self._chunk = Chunk(*nothing(setup.timeline.width), None)
        self._samples = setup.sampler.attach(self._chunk.rows)
        self._slots = np.full(1, NO_SLOT, np.int32)
        self._at = 0
        self._made = EvaluationPoint(0.0, 0, 0, 0)
        self._cuts: deque[tuple[int, EvaluationPoint]] = deque([(0, self._made)])
        self._next_point = 1
        self._mixed = 0  # averagings of all so far
        self._skipping = False
        self.ended = False
        self.taken = 0, 0

    def skip(self, rows: int, empty: int) -> None:
        """Skips rows that were `taken` before, and pieces without any.

        Where pieces end depends on who asks, but not the order of rows and of pieces
        without rows.
        """
        self._skipping = True
        while self.taken != (rows, empty):
            self.next(max(1, rows - self.taken[0]))
        self._skipping = False
        self._samples = self._sampler.attach(self._chunk.rows)

    def next(self, limit: int) -> Segment:
        """Returns the next piece, of at most `limit` rows (>= 1)."""
        if not self._cuts and self._at == self._chunk.rows.time.size:
            self._load()
        rows, cuts, probes = self._chunk.rows, self._cuts, self._probes
        begin = self._at
        stop = min(cuts[0][0] if cuts else rows.time.size, begin + limit)
        probed = bool(probes) and probes[0] == begin < stop
        if probed:
            probes.popleft()
        if probes:
            stop = min(stop, max(probes[0], begin))
        taken = slice(begin, stop)
        self._at = stop
        self.taken = self.taken[0] + stop - begin, self.taken[1] + (stop == begin)
        point = cuts.popleft()[1] if cuts and cuts[0][0] == stop else None
        complete = stop == rows.time.size and not cuts
        self.ended = complete and self._chunk.stop is not None
        return Segment(
            rows=rows.slice(taken.start, stop),
            samples=self._samples[taken],
            keep_slot=self._slots[taken],
            chunk=self._chunk if complete else None,
            point=point,
            probed=probed,
            stop=self._chunk.stop if self.ended else None,
            asks=complete and self._chunk.question is not None,
        )

    def _load(self) -> None:
        chunk = next(self._chunks)
        rows = chunk.rows
        self._chunk, self._at = chunk, 0
        if not self._skipping:
            self._samples = self._sampler.attach(rows)
        self._slots = np.append(self._slots[-1:], rows.write_slot)
        effect = effects(rows.kind)
        if self._probe is not None:
            due = ((rows.version + 1) % self._probe == 0) & effect.commits
            self._probes.extend(np.flatnonzero(due).tolist())
        workers = (rows.worker != NO_WORKER).sum(axis=1)
        commits = self._made.commits + np.cumsum(effect.commits)
        contributed = np.where(effect.contributes, workers, 0)
        contributions = self._made.contributions + np.cumsum(contributed)
        uploads = further_uploads(rows, self._timeline.uploads_per_mixing)
        uploads = self._made.other_uploads + np.cumsum(uploads)

        def after(row: int, time: float) -> EvaluationPoint:
            if row == 0:
                return self._made._replace(time=time)
            last = row - 1
            return EvaluationPoint(
                time, int(commits[last]), int(contributions[last]), int(uploads[last])
            )

        end = self._made.time
        if rows.time.size:
            end = float(rows.time[-1])
        if chunk.stop in TIMED and self._timeline.horizon is not None:
            end = self._timeline.horizon
        mixed = self._mixed + np.cumsum(effect.mixes_all)
        counts = commits, contributions, mixed
        while (cut := self._due(rows, counts, chunk, end)) is not None:
            row, time = cut
            self._cuts.append((row, after(row, time)))
            self._next_point += 1
            check_evaluations(self._unit, self._next_point)
        size = rows.time.size
        if chunk.stop is not None:
            last = self._cuts[-1] if self._cuts else (-1, self._made)
            if last[0] != size or last[1].time != end:
                self._cuts.append((size, after(size, end)))
        self._made = after(size, end)
        if size:
            self._mixed = int(mixed[-1])

    def _due(
        self,
        rows: Rows,
        made: tuple[Int[np.ndarray, " T"], ...],
        chunk: Chunk,
        end: float,
    ) -> tuple[int, float] | None:
        """Returns the row before which, and the time at which, to evaluate next."""
        commits, contributions, mixed = made
        every, size = self._every, rows.time.size
        cadence = self._timeline.cadence
        if every.time is not None:
            time = float(Fraction(repr(every.time)) * self._next_point)
            row = int(np.searchsorted(rows.time, time, side="right"))
            reached = row < size or (chunk.stop is not None and time <= end)
            # What happens at the instant of a question may not be over.
            reached = reached or (chunk.question is not None and time < chunk.question)
            return (row, time) if reached else None
        if every.commits is not None:
            counts, goal = commits, every.commits * self._next_point
        elif every.rounds is not None and cadence.ends_mixed:
            counts, goal = mixed, every.rounds * self._next_point
        elif every.rounds is not None:
            in_commits = every.rounds * (cadence.commits_per_round or 1)
            counts, goal = commits, in_commits * self._next_point
        else:
            epochs = (every.epochs or 1) * self._next_point
            goal = up(epochs * self._timeline.workload.contributions_per_epoch)
            counts = contributions
        row = int(np.searchsorted(counts, goal, side="left")) + 1
        return (row, float(rows.time[row - 1])) if row <= size else None


def nothing(width: int) -> tuple[Rows, Jobs]:
    """Returns no rows and no jobs, in the right shapes and types."""
    wide = np.zeros((0, width), np.int32)

    def flat(name: str) -> np.ndarray:
        return np.zeros(0, float if name.endswith("time") else np.int32)

    rows = Rows(*(wide if name in _WIDE else flat(name) for name in Rows._fields))
    return rows, Jobs(*map(flat, Jobs._fields))


_WIDE = ("worker", "job", "read_version", "read_slot")


Metrics = dict[str, Any]
"""Numbers, or arrays of one for each worker, by metric."""


class Record(NamedTuple):
    """A stretch of one run, executed.

    Attributes:
        run: Place of the run among those executed together.
        rows: Rows that were executed.
        infos: Diagnostics of the rows.
        chunks: Chunks that ended, with their jobs and incidents; none where the
            run ended before its timeline.
        evaluations: rows of the record that came before, point, and metrics: numbers,
            or arrays of one for each worker.
        probes: Numbers to save: row, its samples, and arrays by name, each with the
            axis of workers first.
        stop: Reason of the run's end, on its last record.
        early: Whether it ended before its timeline did.
        located: Whether it ended with a row, not with an evaluation.
    """

    run: int
    rows: Rows
    infos: dict[str, np.ndarray]
    chunks: list[Chunk]
    evaluations: list[tuple[int, EvaluationPoint, Metrics]]
    probes: list[tuple[int, np.ndarray, dict[str, np.ndarray]]]
    stop: StopReason | None
    early: bool
    located: bool
