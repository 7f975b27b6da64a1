"""A world of samples in which nothing feeds back on generation, without an event loop.

Where no slot ever waits, stops or fails, all are busy at one speed: a sample begins
when the first slot is free, which a heap of ends says. The trainer then goes through
the groups in the order in which they were ready. The result is that of the events, bit
for bit.
"""

from bisect import bisect_left, bisect_right
from functools import partial
from heapq import heapify, heapreplace
from math import inf
from typing import Any

import numpy as np

from .buffer import ReadyGroup, SampleBuffer
from .draws import RolloutDraws
from .options import RolloutOptions
from .record import NO_STEP, Rollouts, SampleOutcome, StepRows, columns

CHUNK = 65_536
"""Ends of samples that are worked out at once."""


def is_free(world: RolloutOptions) -> bool:
    """Says whether nothing feeds back on who generates what when."""
    generation, queue, weights = world.generation, world.queue, world.weights
    instant = not weights.seconds.check(1, "weights.seconds").any()
    return (
        weights.mode == "in_place"
        and instant
        and generation.failures is None
        and generation.max_async_level is None
        and (queue.capacity is None or queue.full == "drop_oldest")
        and queue.dropped == "lost"
    )


class RolloutArrays:
    """One run of a world in which `is_free` holds.

    Args:
        world: Options of the world.
        draws: Random numbers of the run.
    """

    def __init__(self, world: RolloutOptions, draws: RolloutDraws) -> None:
        self._world, self._draws = world, draws
        generation = world.generation
        self._slots, self._pace = generation.num_slots, generation.speeds()[-1]
        self._size = generation.group
        self._whole = self._size if generation.complete else 1
        self._queue = SampleBuffer(world.queue, world.trainer)
        self._counts_tokens = world.trainer.samples is None
        self._times: list[float] = []  # of ends of samples, in their order
        self._works: list[float] = []
        self._ended: list[int] = []
        self._slot = list(range(self._slots))
        first = [draws.length(*divmod(n, self._size), 0) for n in range(self._slots)]
        self._lengths = first
        self._heap = [(length, row) for row, length in enumerate(first)]
        heapify(self._heap)
        self._end, self._ends, self._counts = inf, [], []
        self._loads: list[tuple[float, float, int]] = [(0.0, 0.0, 0)]
        self._rows: list[int] = []
        self._ready: dict[str, Any] = {"row": [], "time": [], "version": []}
        self._dropped: list[int] = []
        self._batches: list[list[int]] = []
        self._steps = StepRows()
        self._left: dict[int, int] = {}
        self._is_ready = bytearray()
        self._first_left = 0
        self._stop, self._trained = "", 0

    def play(self) -> Rollouts:
        """Plays the run to its end."""
        done = 0
        while not self._stop:
            self._generate()
            while done < len(self._ended) and not self._stop:
                self._finish(done)
                done += not self._stop
        return self._record()

    def _generate(self) -> None:
        """Works out the next ends, and who begins at each of them."""
        heap, works, ended = self._heap, self._works, self._ended
        lengths, slots, length = self._lengths, self._slot, self._draws.length
        size, there = self._size, len(self._lengths)
        for number in range(there, there + CHUNK):
            work, row = heap[0]
            more = length(number // size, number % size, 0)
            heapreplace(heap, (work + more, number))
            lengths.append(more)
            works.append(work)
            ended.append(row)
            slots.append(slots[row])
        pace = self._pace
        self._times.extend([work * pace for work in works[there - self._slots :]])
        self._is_ready.extend(bytes(CHUNK + self._slots))

    def _finish(self, count: int) -> None:
        """Lets steps end before an end of a sample, then takes that in.

        Args:
            count: Number of the end, from 0.
        """
        time, row = self._times[count], self._ended[count]
        if self._end <= time:
            self._end_steps(time)
            if self._stop:
                return
        stop = self._world.stop.time
        if stop is not None and time > stop:
            self._stop, self._at, self._count = "time", stop, count
            return
        group = row // self._whole
        left = self._left.get(group, self._whole) - 1
        if left:
            self._left[group] = left
            return
        self._left.pop(group, None)
        self._enter(group, time)
        self._train(time, count + 1)
        if self._end <= time:
            self._end_steps(time, count + 1)

    def _end_steps(self, until: float, count: int | None = None) -> None:
        """Lets steps end up to a time; says in `_stop` whether the run ends with one.

        Args:
            until: Virtual seconds.
            count: Ends of samples that were taken in, if not those before the step's.
        """
        while self._end <= until:
            now, stop = self._end, self._world.stop
            if stop.time is not None and now > stop.time:
                self._stop, self._at = "time", stop.time
                self._count = bisect_right(self._times, stop.time)
                return
            before = bisect_left(self._times, now) if count is None else count
            self._end, version = inf, len(self._ends) + 1
            self._ends.append(now)
            self._counts.append(before)
            self._steps.end(now)
            self._trained += len(self._batches[-1])
            if stop.steps is not None and version >= stop.steps:
                self._stop = "steps"
            elif stop.samples is not None and self._trained >= stop.samples:
                self._stop = "samples"
            if self._stop:
                self._at, self._count = now, before
                return
            if version % self._world.weights.every == 0:
                exact = before and self._times[before - 1] == now
                work = self._works[before - 1] if exact else now / self._pace
                self._loads.append((now, work, version))
            self._train(now, before)
            count = before if self._end == now else None

    def _version_of(self, row: int) -> int:
        """Returns the version that a sample began with."""
        count = row - self._slots  # the end of a sample that made room for it
        if count < 0:
            return 0
        ends = min(
            bisect_right(self._ends, self._times[count]),
            bisect_right(self._counts, count + 1),
        )
        return ends - ends % self._world.weights.every

    def _enter(self, group: int, time: float) -> None:
        rows = range(group * self._whole, (group + 1) * self._whole)
        weight = len(rows)
        if self._counts_tokens:
            weight = sum(self._lengths[row] for row in rows)
        self._is_ready[group] = 1
        self._ready["row"].extend(rows)
        self._ready["time"].extend([time] * len(rows))
        self._ready["version"].extend([len(self._ends)] * len(rows))
        number = rows[0] // self._size
        self._queue.enter(number, self._version_of(rows[0]), weight, rows)

    def _train(self, now: float, count: int) -> None:
        """Lets the trainer take a batch, if it is idle, and the queue drop groups."""
        self._drop(self._queue.drop_old(len(self._ends)))
        if self._end == inf:
            taken = self._queue.take(partial(self._first_open, count))
            if taken:
                self._step([row for group in taken for row in group.rows], now)
        self._drop(self._queue.drop_over())

    def _first_open(self, count: int) -> float:
        if not self._queue.waits:
            return inf
        while self._is_ready[self._first_left]:
            self._first_left += 1
        row = self._first_left * self._whole
        if row >= self._slots + count:
            return inf
        if self._queue.by_version:
            return self._version_of(row)
        return row // self._size

    def _step(self, rows: list[int], now: float) -> None:
        tokens = sum(self._lengths[row] for row in rows)
        took = self._draws.step(len(self._batches), tokens)
        left = sum(len(group.rows) for group in self._queue)
        self._steps.start(now, len(rows), tokens, left)
        self._batches.append(rows)
        self._end = now + took

    def _drop(self, groups: list[ReadyGroup]) -> None:
        for group in groups:
            self._dropped.extend(group.rows)

    def _record(self) -> Rollouts:
        """Returns what happened up to the end."""
        at, count = self._at, self._count
        # The last end of a sample may have ended the run before its slot began again.
        again = not (self._stop != "time" and count and self._times[count - 1] == at)
        size = self._slots + count - (not again)
        row = np.arange(size)
        started = np.r_[np.zeros(self._slots), self._works[: size - self._slots]]
        ends = np.array(self._ended[:count], np.int64)
        work = self._works[count - 1] if count and self._times[count - 1] == at else 0.0
        work = work or at / self._pace
        samples: dict[str, Any] = {
            "group": row // self._size,
            "prompt": row // self._size,
            "member": row % self._size,
            "attempt": np.zeros(size),
            "slot": self._slot[:size],
            "tokens": np.maximum(0.0, work - started),
            "start_time": np.r_[
                np.zeros(self._slots), self._times[: size - self._slots]
            ],
            "finish_time": np.full(size, np.nan),
            "ready_time": np.full(size, np.nan),
            "outcome": np.full(size, SampleOutcome.UNDER_WAY),
            "start_version": self._versions(size),
            "ready_version": np.zeros(size),
            "step": np.full(size, NO_STEP),
            "start_work": started,
            "finish_work": np.full(size, work),
        }
        samples["tokens"][ends] = np.array(self._lengths)[ends]
        samples["finish_time"][ends] = self._times[:count]
        samples["finish_work"][ends] = self._works[:count]
        ready = np.array(self._ready["row"], np.int64)
        samples["ready_time"][ready] = self._ready["time"]
        samples["ready_version"][ready] = self._ready["version"]
        samples["outcome"][np.array(self._dropped, np.int64)] = SampleOutcome.DROPPED
        for number, rows in enumerate(self._batches, 1):
            samples["step"][rows] = number
            if number <= len(self._ends):
                samples["outcome"][rows] = SampleOutcome.TRAINED
        time, work_of, version = map(list, zip(*self._loads, strict=True))
        loads = {"time": time, "work": work_of, "version": version}
        seconds = {"busy": self._slots * at}
        seconds |= dict.fromkeys(("paused", "blocked", "down"), 0.0)
        return Rollouts(
            columns(samples),
            columns(self._steps.columns),
            columns(loads),
            columns({"sample": [], "version": [], "tokens": []}),
            seconds,
            at,
            self._stop,
            "arrays",
        )

    def _versions(self, size: int) -> np.ndarray:
        """Returns the versions that samples began with."""
        n = max(size - self._slots, 0)
        ends = np.minimum(
            np.searchsorted(self._ends, self._times[:n], "right"),
            np.searchsorted(self._counts, np.arange(1, n + 1), "right"),
        )
        ends -= ends % self._world.weights.every
        return np.r_[np.zeros(self._slots, np.int64), ends]
