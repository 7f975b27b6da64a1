"""A world of samples, played event by event.

Busy slots all make tokens at one speed, which depends on how many are busy. `work`
counts the tokens that a slot, always busy, would have made since the start: a sample
ends when `work` has grown by its length, so that a change of speed moves all ends at
once. At one instant the order is: weights are loaded, a step ends, free slots begin
samples, samples end (the first to have started first). After each of these the trainer
takes a batch, if it is idle and there is one.
"""

from heapq import heappop, heappush
from itertools import chain
from math import inf, nan

from ....parts.errors import ScenarioError
from .buffer import ReadyGroup
from .record import Rollouts, SampleOutcome, columns
from .slots import FINISH, LOADED, STEP_END, Rollout, SlotEvents, add_row

SAMPLE_COLUMNS = (
    *("group", "prompt", "member", "attempt", "slot", "tokens", "start_time"),
    *("finish_time", "ready_time", "outcome", "start_version", "ready_version"),
    *("step", "start_work", "finish_work"),
)


class RolloutEvents(SlotEvents):
    """One run of a world of samples."""

    def play(self) -> Rollouts:
        """Plays the run to its end.

        Raises:
            ScenarioError: nothing can happen any more.
        """
        stop = self._world.stop
        self._begin()
        why = ""
        while not why:
            time, kind = self._next()
            if stop.time is not None and time > stop.time:
                self._pass(stop.time)
                why = "time"
                break
            self._pass(time)
            self._handle(kind)
            why = self._reached() if kind == STEP_END else ""
            if why:
                break
            self._train()
            if not self._timed or self._timed[0][0] > time:
                self._begin()
        return self._record(why)

    def _reached(self) -> str:
        stop = self._world.stop
        if stop.steps is not None and self._version >= stop.steps:
            return "steps"
        if stop.samples is not None and self._trained >= stop.samples:
            return "samples"
        return ""

    def _next(self) -> tuple[float, int]:
        due = inf
        if self._running and not self._paused:
            since, work = self._anchor
            target = self._running[0][0]
            due = max(self.now, since + (target - work) * self._pace)
        if self._timed and self._timed[0][0] <= due:
            return heappop(self._timed)
        if due == inf:
            raise ScenarioError(
                f"the world must continue, but stands still at {self.now:g} virtual s "
                f"after {self._version} steps: no slot may begin a sample, and there "
                f"is no batch; loosen queue or generation.max_async_level"
            )
        return due, FINISH

    def _handle(self, kind: int) -> None:
        if kind == FINISH:
            self._work, _, sample = heappop(self._running)
            self._finish(sample)
        elif kind == STEP_END:
            self._end_step()
        else:
            self._end_load()

    def _enter(self, samples: list[Rollout]) -> None:
        for sample in samples:
            sample.ready_time, sample.ready_version = self.now, self._version
        version = min(sample.start_version for sample in samples)
        tokens = sum(sample.tokens for sample in samples)
        weight = tokens if self._counts_tokens else len(samples)
        self._queue.enter(samples[0].group, version, weight, samples)

    def _train(self) -> None:
        """Lets the trainer take a batch, if it is idle, and the queue drop groups."""
        while True:
            looked = self._version, self._queue.entries
            if looked != self._looked:
                self._looked = looked
                self._drop(self._queue.drop_old(self._version))
            if self._training is None:
                taken = self._queue.take(self._first_open, self._version)
                if taken:
                    self._step([one for group in taken for one in group.samples])
            if not self._admit_blocked():
                break
        self._drop(self._queue.drop_over())

    def _admit_blocked(self) -> bool:
        """Lets finished groups into the queue while there is room; says if any."""
        admitted = False
        while self._blocked and self._queue.has_room:
            samples, slot = self._blocked.pop(0)
            self._enter(samples)
            heappush(self._free, slot)
            admitted = True
        return admitted

    def _first_open(self) -> float:
        """Returns the smallest version or number of what is being generated."""
        if not self._queue.waits:
            return inf
        if self._queue.by_version:
            samples = chain.from_iterable(self._open.values())
            return min((sample.start_version for sample in samples), default=inf)
        stopped = (number for number, *_ in self._again)
        return min(chain(self._open, stopped), default=inf)

    def _step(self, samples: list[Rollout]) -> None:
        filling = self._queue.filling(samples, self._version)
        tokens = sum(sample.tokens for sample in filling)
        self._training = samples
        left = sum(len(group.samples) for group in self._queue)
        add_row(self.steps, self.now, nan, len(filling), tokens, left)
        # To those who pace starts, a step is one batch, whatever is withheld from it.
        self._admitted -= len(samples) - (self._world.trainer.samples or len(samples))
        number = len(self.steps["start_time"])
        took = self._draws.step(number - 1, tokens)
        for sample in samples:
            sample.step = number
        heappush(self._timed, (self.now + took, STEP_END))

    def _drop(self, groups: list[ReadyGroup]) -> None:
        for group in groups:
            for sample in group.samples:
                sample.outcome = SampleOutcome.DROPPED
            if self._world.queue.dropped != "again":
                self._admitted -= len(group.samples)
                continue
            number = self._open_group() if self._complete else group.number
            for sample in group.samples:
                self._repeat(sample, number)

    def _end_step(self) -> None:
        samples = self._training or []
        self._training = None
        self.steps["end_time"][-1] = self.now
        for sample in samples:
            is_young = self._queue.is_young(sample, self._version)
            fate = SampleOutcome.TRAINED if is_young else SampleOutcome.MASKED
            sample.outcome = fate
        # Masked ones count, too: a run may come to train on nothing else.
        self._trained += len(self._queue.filling(samples, self._version))
        self._version += 1
        if self._version % self._world.weights.every:
            return
        self._wanted = self._version
        if not (self._loads_now or self._drains):
            self._request()

    def _request(self) -> None:
        mode = self._world.weights.mode
        if mode == "wait":
            self._drains = True
            self._drained()
            return
        if mode == "abort":
            running, self._running = self._running, []
            for sample in sorted((one for *_, one in running), key=lambda one: one.row):
                self._abort(sample)
                heappush(self._free, sample.slot)
        self._load()

    def _drained(self) -> None:
        if self._drains and not self._running and not self._loads_now:
            self._load()

    def _load(self) -> None:
        self._loading, self._loads_now = self._wanted, True
        took = self._draws.load(self._num_loads)
        self._num_loads += 1
        if took:
            self._paused = True
            self._set_pace()
        heappush(self._timed, (self.now + took, LOADED))

    def _end_load(self) -> None:
        if self._world.weights.mode == "retract":
            self._retract()
        self._loaded = self._loading
        self._drains = self._loads_now = False
        if self._paused:
            self._paused = False
            self._set_pace()
        add_row(self.loads, self.now, self._work, self._loaded)
        if self._wanted > self._loaded:
            self._request()

    def _record(self, why: str) -> Rollouts:
        for sample in self._generating.values():
            sample.tokens, sample.finish_work = self._made(sample), self._work
            self._piece(sample, sample.tokens)
        samples = {
            name: [getattr(sample, name) for sample in self.samples]
            for name in SAMPLE_COLUMNS
        }
        return Rollouts(
            columns(samples),
            columns(self.steps),
            columns(self.loads),
            columns(self.pieces),
            self.seconds,
            self.now,
            why,
            "events",
        )
