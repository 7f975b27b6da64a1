"""Drives a program along its timelines, and gives back what happened, run by run.

While the device executes one buffer of rows, the host plays the next.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ..files.timeline import NO_WORKER, Rows, StopReason, effects
from ..parts.errors import ScenarioError
from ..parts.metrics import metric
from ..parts.stop import Windowed
from ..problem.keys import key_of
from ..problem.metrics.fairness import label_mix
from .execute import FEW, Carry, Program, null_events, put
from .kernel import ANSWER, Event, Info
from .row_stream import (
    EvaluationPoint,
    Metrics,
    Record,
    RowStream,
    Segment,
    nothing,
)
from .setup import RunSetup

Passed = Callable[[int, EvaluationPoint], None]
"""Called with the number of a run and an evaluation that it has passed."""


def _of_run(names: Sequence[str]) -> dict[str, Callable[..., np.ndarray]]:
    """Returns what makes the values of the metrics that depend on a run's clients."""
    found = {name: metric(name) for name in names}
    return {name: each.finish() for name, each in found.items() if each.of_run}


_Pieces = list[tuple[int, Segment]]
"""Pieces of a run in a buffer, each after the row at which it begins."""
_End = tuple[int, StopReason, bool]
"""The end of a run that its numbers ask for: rows of the record that are left, the
reason, and whether an evaluation ends it, not a row."""


class _Call(NamedTuple):
    """Rows of a buffer that are executed in one call; then perhaps an evaluation."""

    first: int
    last: int
    points: dict[int, EvaluationPoint] | None
    probed: tuple[int, ...]


class _Buffer(NamedTuple):
    """A dispatched buffer, whose results may not be there yet."""

    placed: dict[int, _Pieces]
    segments: list[_Call]
    infos: Info
    metrics: list[dict[str, jax.Array]]
    revealed: list[dict[str, jax.Array]]


class Runner:
    """Executes some runs together until all have ended.

    Args:
        program: The program of the runs.
        feeds: The feed of every run, or the one that all share.
        setups: The facts of each run; all of one structure.
        length: Rows of a buffer.
    """

    def __init__(
        self,
        program: Program,
        feeds: list[RowStream],
        setups: list[RunSetup],
        length: int,
    ) -> None:
        first, num_runs = setups[0], len(setups)
        scenario = first.scenario
        self._program, self._feeds, self._length = program, feeds, length
        self._width, self._samples = first.timeline.width, first.samples
        self._metrics = scenario.evaluate.metrics
        self._target, self._window = scenario.stop.target, scenario.stop.windowed
        self._probe = scenario.probe.what if scenario.probe else ()
        self._finish = _of_run(self._metrics)
        self._mix = [label_mix(s.shares) if self._finish else None for s in setups]
        self._recent = [np.zeros(0)] * num_runs
        self._alive = [True] * num_runs
        self._ended: dict[int, StopReason] = {}  # runs whose last evaluation is due
        self._pending: dict[int, EvaluationPoint] = {}
        self._answer_log = first.timeline.answer_log
        self._unanswered: list[_Buffer] = []
        if self._answer_log is not None:
            self._answer_log.clear()
        keys = jnp.stack([key_of(setup.run.seed) for setup in setups])
        self._carry: Carry = program.start(
            keys if program.batched else keys[0], first.timeline.num_registers
        )

    def records(
        self,
        pauses: Callable[[], bool] = lambda: False,
        passed: Passed = lambda *_: None,
    ) -> Iterator[Record | None]:
        """Yields the records, in order within each run.

        Args:
            pauses: says whether to pause: then it yields None as soon as all rows so
                far are executed, and `state` may be called.
            passed: is called with each evaluation when the device has passed it, which
                may be minutes before its record is yielded.
        """
        ahead = self._dispatch()
        while ahead is not None:
            pausing = pauses()
            done, ahead = ahead, None if pausing else self._dispatch()
            yield from self._collect(done, passed)
            if pausing:
                yield None
                ahead = self._dispatch()
        if (mismatches := int(np.sum(np.asarray(self._carry.mismatches)))) > 0:
            raise AssertionError(
                f"{mismatches} reads found another version in their register than the "
                "timeline has; this is a defect of the simulator, please report it"
            )

    def state(self) -> dict[str, PyTree]:
        """Returns the state of the rest, in a pause: arrays, numbers and words."""
        self._answer()
        return {
            "carry": [_host(leaf) for leaf in jax.tree.leaves(self._carry)],
            "taken": [feed.taken for feed in self._feeds],
            "recent": self._recent,
            "alive": self._alive,
            "ended": {str(run): stop.name for run, stop in self._ended.items()},
            "pending": {str(feed): [*point] for feed, point in self._pending.items()},
            "answers": self._answer_log and self._answer_log.state(),
        }

    def restore(self, state: dict[str, PyTree]) -> None:
        """Goes to the pause of `state`, in runs that have not started yet."""
        leaves, tree = jax.tree.flatten(self._carry)
        pairs = zip(leaves, state["carry"], strict=True)
        self._carry = jax.tree.unflatten(tree, [_device(*pair) for pair in pairs])
        if self._answer_log is not None:
            self._answer_log.restore(state["answers"])
        for feed, taken in zip(self._feeds, state["taken"], strict=True):
            feed.skip(*taken)
        self._recent, self._alive = state["recent"], state["alive"]
        self._ended = {int(r): StopReason[name] for r, name in state["ended"].items()}
        self._pending = {
            int(f): EvaluationPoint(*p) for f, p in state["pending"].items()
        }

    def _lives(self, feed: int) -> bool:
        """Says whether a feed has rows left that a run still needs."""
        wanted = any(self._alive) if len(self._feeds) == 1 else self._alive[feed]
        return wanted and not self._feeds[feed].ended

    def _dispatch(self) -> _Buffer | None:
        """Fills a buffer, starts its execution and does not wait for it."""
        if not any(map(self._lives, range(len(self._feeds)))):
            return None
        runs = len(self._feeds) if self._program.batched else None
        runs = None if self._program.shared else runs
        events = null_events(self._length, self._width, self._samples, runs)
        placed: dict[int, _Pieces] = {f: [] for f in range(len(self._feeds))}
        segments: list[_Call] = []
        at, asks = 0, False
        while not asks and at < self._length and any(map(self._lives, placed)):
            longest, probed = 0, []
            for index, feed in enumerate(self._feeds):
                if index in self._pending or not self._lives(index):
                    continue
                piece = feed.next(self._length - at)
                put(events, at, piece, None if runs is None else index)
                placed[index].append((at, piece))
                asks = piece.asks
                longest = max(longest, piece.rows.time.size)
                if piece.probed:
                    probed.append(index)
                if piece.point is not None:
                    self._pending[index] = piece.point
            waiting = any(self._lives(i) and i not in self._pending for i in placed)
            points = None if waiting else dict(self._pending)
            if points is not None:
                self._pending.clear()
            segments.append(_Call(at, at + longest, points, tuple(probed)))
            at += longest
        if self._answer_log is None:
            return self._execute(events, placed, segments)
        length = next((few for few in FEW if few >= at), self._length)
        events = jax.tree.map(lambda column: column[:length], events)
        buffer = self._execute(events, placed, segments)
        self._unanswered.append(buffer)
        if asks:
            self._answer()
            self._answer_log.answer()
        return buffer

    def _answer(self) -> None:
        """Takes up what was executed since the last question."""
        buffers, self._unanswered = self._unanswered, []
        for buffer in buffers:
            pieces = buffer.placed[0]
            at = np.concatenate(
                [np.arange(at, at + piece.rows.time.size) for at, piece in pieces]
            )
            worker = np.concatenate([piece.rows.worker for _, piece in pieces])
            kinds = np.concatenate([piece.rows.kind for _, piece in pieces])
            there = (worker != NO_WORKER) & effects(kinds).contributes[:, None]
            values = {
                name.removeprefix(ANSWER): np.asarray(column)[at][there]
                for name, column in buffer.infos.items()
                if name.startswith(ANSWER)
            }
            metrics = {}
            for name, found in buffer.metrics[-1].items() if buffer.metrics else ():
                value = np.asarray(found)
                if name in self._finish:
                    value = self._finish[name](self._mix[0], value)
                metrics[name] = float(metric(name).mean(value))
            assert self._answer_log is not None
            self._answer_log.add(worker[there], values, metrics)

    def _execute(
        self,
        events: Event,
        placed: dict[int, _Pieces],
        segments: list[_Call],
    ) -> _Buffer:
        program = self._program
        infos = program.infos(self._carry, events)
        events = program.loaded(events)
        metrics, revealed = [], []
        for segment in segments:
            if segment.probed:
                revealed.append(
                    program.reveal(self._carry, events, segment.first, self._probe)
                )
            if segment.last > segment.first:
                self._carry, infos = program.run(
                    self._carry, events, segment.first, segment.last, infos
                )
            if segment.points:
                metrics.append(program.evaluate(self._carry, self._metrics))
        return _Buffer(placed, segments, infos, metrics, revealed)

    def _collect(self, buffer: _Buffer, passed: Passed) -> Iterator[Record]:
        self._wait(buffer, passed)
        infos = {name: np.asarray(value) for name, value in buffer.infos.items()}
        metrics = [{k: np.asarray(v) for k, v in m.items()} for m in buffer.metrics]
        evaluated = [segment for segment in buffer.segments if segment.points]
        revealed = [{k: np.asarray(v) for k, v in r.items()} for r in buffer.revealed]
        probed = [segment for segment in buffer.segments if segment.probed]
        for run, alive in enumerate(self._alive):
            if not alive:
                continue
            feed = 0 if len(self._feeds) == 1 else run
            pieces = buffer.placed[feed]
            evaluations = []
            for segment, values in zip(evaluated, metrics, strict=True):
                point = (segment.points or {}).get(feed)
                if point is not None:
                    mine = {
                        k: v[run] if self._program.batched else v
                        for k, v in values.items()
                    }
                    for name, finish in self._finish.items():
                        mine[name] = finish(self._mix[run], mine[name])
                    evaluations.append((segment.last, point, mine))
            probes = [
                (
                    segment.first,
                    {k: self._of_run(run, v[None])[0] for k, v in values.items()},
                )
                for segment, values in zip(probed, revealed, strict=True)
                if feed in segment.probed
            ]
            if not pieces and not evaluations:
                continue
            record = self._record(run, pieces, infos, evaluations, probes)
            last = pieces[-1][1].point if pieces else None
            waits = last is not None and all(last is not e[1] for e in evaluations)
            if record.stop and waits and not record.early:
                # The others' rows up to their evaluation are in a later buffer.
                self._ended[run], record = record.stop, record._replace(stop=None)
            self._alive[run] = record.stop is None
            yield record

    def _wait(self, buffer: _Buffer, passed: Passed) -> None:
        """Waits for a buffer's evaluations, and tells of each run's."""
        calls = (call for call in buffer.segments if call.points)
        for call, values in zip(calls, buffer.metrics, strict=True):
            jax.block_until_ready(values)
            for run, alive in enumerate(self._alive):
                feed = 0 if len(self._feeds) == 1 else run
                point = (call.points or {}).get(feed)
                if alive and point is not None:
                    passed(run, point)

    def _of_run(self, run: int, values: np.ndarray) -> np.ndarray:
        """Returns one run's share of values that have the axis of rows first."""
        return values[:, run] if self._program.batched else values

    def _record(
        self,
        run: int,
        pieces: _Pieces,
        infos: dict[str, np.ndarray],
        evaluations: list[tuple[int, EvaluationPoint, Metrics]],
        probes: list[tuple[int, dict[str, np.ndarray]]],
    ) -> Record:
        at = np.concatenate(
            [np.arange(at, at + piece.rows.time.size) for at, piece in pieces] or [[]]
        ).astype(np.int64)
        if pieces:
            columns = zip(*(piece.rows for _, piece in pieces), strict=True)
            rows = Rows(*map(np.concatenate, columns))
        else:  # an evaluation that the others' rows have kept waiting
            rows = nothing(self._width)[0]
        samples = np.concatenate(
            [piece.samples for _, piece in pieces] or [np.zeros(0)]
        )
        mine = {k: self._of_run(run, values)[at] for k, values in infos.items()}
        located = [
            (int(np.searchsorted(at, place, side="left")), point, values)
            for place, point, values in evaluations
        ]
        chunks = [piece.chunk for _, piece in pieces if piece.chunk is not None]
        stop = pieces[-1][1].stop if pieces else self._ended[run]
        early = by_row = False
        end = self._end(run, rows, mine, located)
        if end is not None:
            last, stop, evaluated = end
            early, by_row = True, not evaluated
            rows = rows.slice(0, last)
            mine = {name: values[:last] for name, values in mine.items()}
            last -= by_row
            located = [e for e in located if e[0] <= last]
            # Which jobs had ended by then only the world can say.
            chunks = []
        saved = [
            (row, samples[row], values)
            for row, values in (
                (int(np.searchsorted(at, place)), values) for place, values in probes
            )
            if row < rows.time.size
        ]
        return Record(run, rows, mine, chunks, located, saved, stop, early, by_row)

    def _end(
        self,
        run: int,
        rows: Rows,
        infos: dict[str, np.ndarray],
        evaluations: list[tuple[int, EvaluationPoint, Metrics]],
    ) -> _End | None:
        """Returns where the numbers of a stretch end its run, if they do."""
        commits = effects(rows.kind).commits
        found: list[_End] = []
        lost = ~np.isfinite(infos["loss"]) & commits
        if lost.any():
            found.append((int(lost.argmax()) + 1, StopReason.DIVERGED, False))
        for executed, _, values in evaluations:
            if self._reached(values):
                found.append((executed, StopReason.TARGET, True))
                break
        if self._window is not None:
            row = self._falls_below(self._window, run, np.flatnonzero(commits), infos)
            if row is not None:
                found.append((row + 1, StopReason.TARGET, False))
        # Where a run diverges in a row, an evaluation after it says nothing.
        return min(found, key=lambda end: end[0], default=None)

    def _reached(self, metrics: Metrics) -> bool:
        """Says whether an evaluation is at the target or beyond it, workers' mean."""
        for name, value in (self._target or {}).items():
            record = metric(name)
            found = float(record.mean(metrics[name]))
            return found >= value if record.higher_is_better else found <= value
        return False

    def _falls_below(
        self,
        window: Windowed,
        run: int,
        commits: np.ndarray,
        infos: dict[str, np.ndarray],
    ) -> int | None:
        """Returns the first row at which a diagnostic's mean is below its value."""
        if window.column not in infos or infos[window.column].ndim > 1:
            names = sorted(name for name in infos if "/" not in name)
            raise ScenarioError(
                f"stop.windowed.column must be one of {', '.join(names)}, got "
                f"{window.column!r}; take one of them"
            )
        before = self._recent[run]
        values = np.concatenate([before, infos[window.column][commits]])
        size = window.commits
        self._recent[run] = values[max(values.size - size + 1, 0) :]
        if values.size < size:
            return None
        means = np.lib.stride_tricks.sliding_window_view(values, size).mean(axis=1)
        below = means < window.below
        if not below.any():
            return None
        return int(commits[int(below.argmax()) + size - 1 - before.size])


def _host(leaf: Array) -> np.ndarray:
    """Returns an array of a carry on the host; of a key its data."""
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def _device(like: Array, values: np.ndarray) -> Array:
    """Returns values of `_host` as the array that they were taken from."""
    is_key = jnp.issubdtype(like.dtype, jax.dtypes.prng_key)
    found = jnp.asarray(values)
    if is_key:
        found = jax.random.wrap_key_data(found, impl=jax.random.key_impl(like))
    if (found.shape, found.dtype) != (like.shape, like.dtype):
        raise ValueError(f"must be {like.shape} {like.dtype}, got {found.shape}")
    return found
