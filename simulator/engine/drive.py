"""Drives a program along its timelines, and gives back what happened, run by run.

While the device executes one buffer of rows, the host plays the next.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np

from simulator.algorithms.base import Event, Info
from simulator.engine.execute import Carry, Program, null_events, put
from simulator.engine.feed import Feed, Piece, Point
from simulator.timeline import Chunk, Kind, Rows, StopReason

HIGHER_IS_BETTER = ("test_accuracy",)
"""Metrics whose target is reached from below; all others from above."""


class Target(NamedTuple):
    """A metric and the value at which a run may stop."""

    metric: str
    value: float

    def reached(self, metrics: dict[str, float]) -> bool:
        """Says whether an evaluation is at the target or beyond it."""
        found = metrics[self.metric]
        higher = self.metric in HIGHER_IS_BETTER
        return found >= self.value if higher else found <= self.value


class Record(NamedTuple):
    """What happened in a stretch of one run.

    Attributes:
        run: its place among the runs that are executed together.
        rows: that were executed.
        infos: diagnostics of the rows.
        chunks: of the timeline that ended, for their jobs and incidents; none where the
            run ended before its timeline.
        evaluations: rows of the record that came before, point, and metrics.
        stop: why the run ended, on its last record.
        early: whether it ended before its timeline did.
    """

    run: int
    rows: Rows
    infos: dict[str, np.ndarray]
    chunks: list[Chunk]
    evaluations: list[tuple[int, Point, dict[str, float]]]
    stop: StopReason | None
    early: bool


class _Placed(NamedTuple):
    """A piece in a buffer."""

    at: int
    piece: Piece


class _Segment(NamedTuple):
    """Rows of a buffer that are executed in one call; then perhaps an evaluation."""

    first: int
    last: int
    points: dict[int, Point] | None


class _Buffer(NamedTuple):
    """A dispatched buffer, whose results may not be there yet."""

    placed: dict[int, list[_Placed]]
    segments: list[_Segment]
    infos: Info
    metrics: list[dict[str, jax.Array]]


class Drive:
    """Executes some runs together until all have ended.

    Args:
        program: of the runs.
        feeds: of every run, or the one that all share.
        keys: of the runs' numerics, with an axis of runs if the program is batched.
        num_registers: that suffice for every timeline.
        width: `W`.
        samples: `V` and `S`.
        metrics: to evaluate.
        length: rows of a buffer.
        num_runs: how many.
        target: at which a run may stop.
    """

    def __init__(
        self,
        program: Program,
        feeds: list[Feed],
        keys: jax.Array,
        *,
        num_registers: int,
        width: int,
        samples: tuple[int, int],
        metrics: tuple[str, ...],
        length: int,
        num_runs: int = 1,
        target: Target | None = None,
    ) -> None:
        self._program, self._feeds = program, feeds
        self._width, self._samples, self._metrics = width, samples, metrics
        self._length, self._target = length, target
        self._alive = [True] * num_runs
        self._pending: dict[int, Point] = {}
        self._carry: Carry = program.start(keys, num_registers)

    def records(self) -> Iterator[Record]:
        """Yields what happened, in order within each run."""
        ahead = self._dispatch()
        while ahead is not None:
            done, ahead = ahead, self._dispatch()
            yield from self._collect(done)
        if (mismatches := int(np.sum(np.asarray(self._carry.mismatches)))) > 0:
            raise AssertionError(
                f"{mismatches} reads found another version in their register than the "
                f"timeline says; this is a defect of the simulator, please report it"
            )

    def _lives(self, feed: int) -> bool:
        """Says whether a feed has rows left that somebody still wants."""
        wanted = any(self._alive) if len(self._feeds) == 1 else self._alive[feed]
        return wanted and not self._feeds[feed].ended

    def _dispatch(self) -> _Buffer | None:
        """Fills a buffer, starts its execution and does not wait for it."""
        runs = len(self._feeds) if self._program.batched else None
        runs = None if self._program.shared else runs
        events = null_events(self._length, self._width, self._samples, runs)
        placed: dict[int, list[_Placed]] = {f: [] for f in range(len(self._feeds))}
        segments: list[_Segment] = []
        at = 0
        while at < self._length and any(map(self._lives, placed)):
            longest = 0
            for index, feed in enumerate(self._feeds):
                if index in self._pending or not self._lives(index):
                    continue
                piece = feed.next(self._length - at)
                put(events, at, piece, None if runs is None else index)
                placed[index].append(_Placed(at, piece))
                longest = max(longest, piece.rows.time.size)
                if piece.point is not None:
                    self._pending[index] = piece.point
            waiting = any(self._lives(i) and i not in self._pending for i in placed)
            points = None if waiting else dict(self._pending)
            if points is not None:
                self._pending.clear()
            segments.append(_Segment(at, at + longest, points))
            at += longest
        if not segments:
            return None
        return self._execute(events, placed, segments)

    def _execute(
        self,
        events: Event,
        placed: dict[int, list[_Placed]],
        segments: list[_Segment],
    ) -> _Buffer:
        program = self._program
        infos = program.infos(self._carry, events)
        if not program.stepwise:
            events = jax.device_put(events)
        metrics = []
        for segment in segments:
            if segment.last > segment.first:
                self._carry, infos = program.run(
                    self._carry, events, segment.first, segment.last, infos
                )
            if segment.points:
                metrics.append(program.evaluate(self._carry, self._metrics))
        return _Buffer(placed, segments, infos, metrics)

    def _collect(self, buffer: _Buffer) -> Iterator[Record]:
        infos = {name: np.asarray(value) for name, value in buffer.infos.items()}
        metrics = [{k: np.asarray(v) for k, v in m.items()} for m in buffer.metrics]
        evaluated = [segment for segment in buffer.segments if segment.points]
        for run, alive in enumerate(self._alive):
            if not alive:
                continue
            feed = 0 if len(self._feeds) == 1 else run
            pieces = buffer.placed[feed]
            if not pieces:
                continue
            of_run = (lambda a: a[:, run]) if self._program.batched else (lambda a: a)  # noqa: B023
            evaluations = []
            for segment, values in zip(evaluated, metrics, strict=True):
                point = (segment.points or {}).get(feed)
                if point is not None:
                    mine = {
                        k: float(v[run] if self._program.batched else v)
                        for k, v in values.items()
                    }
                    evaluations.append((segment.last, point, mine))
            record = self._record(run, pieces, infos, of_run, evaluations)
            self._alive[run] = record.stop is None
            yield record

    def _record(
        self,
        run: int,
        pieces: list[_Placed],
        infos: dict[str, np.ndarray],
        of_run: Callable[[np.ndarray], np.ndarray],
        evaluations: list[tuple[int, Point, dict[str, float]]],
    ) -> Record:
        at = np.concatenate(
            [np.arange(p.at, p.at + p.piece.rows.time.size) for p in pieces]
        ).astype(np.int64)
        rows = Rows(
            *(
                np.concatenate(columns)
                for columns in zip(*(p.piece.rows for p in pieces), strict=True)
            )
        )
        mine = {name: of_run(values)[at] for name, values in infos.items()}
        stop, early, end = pieces[-1].piece.stop, False, None
        lost = ~np.isfinite(mine["loss"]) & (rows.kind == Kind.COMMIT)
        if lost.any():
            end = int(lost.argmax()) + 1
            stop, early = StopReason.DIVERGED, True
        for place, _, values in evaluations:
            executed = int(np.searchsorted(at, place, side="left"))
            if end is not None and executed >= end:
                break
            if self._target is not None and self._target.reached(values):
                end, stop, early = executed, StopReason.TARGET, True
                evaluations = [e for e in evaluations if e[0] <= place]
                break
        chunks = [p.piece.chunk for p in pieces if p.piece.chunk is not None]
        if end is not None:
            rows = rows.slice(0, end)
            mine = {name: values[:end] for name, values in mine.items()}
            last = at[end - 1] + 1 if end else 0
            if stop is StopReason.DIVERGED:
                evaluations = [e for e in evaluations if e[0] < last]
            # Which jobs had ended by then only the world can say.
            chunks = []
        placed = [
            (int(np.searchsorted(at, place, side="left")), point, values)
            for place, point, values in evaluations
        ]
        return Record(run, rows, mine, chunks, placed, stop, early)
