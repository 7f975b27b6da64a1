"""Slots that make samples: their clock of work, and how samples begin and end."""

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import ceil, inf, nan

from .buffer import SampleBuffer
from .draws import RolloutDraws
from .options import RolloutOptions
from .record import NO_STEP, SampleOutcome

LOADED, STEP_END, FINISH = range(3)
"""Events, in their order at one instant."""
STEP_COLUMNS = ("start_time", "end_time", "samples", "tokens", "left")


@dataclass(slots=True, eq=False)
class Rollout:
    """A sample: a row of the record (`Rollouts.samples`), and its generation.

    Attributes:
        row: Number in the order of starts, from 0.
        length: Tokens that it ends with.
        resumed: Tokens that it had when it last continued after being retracted.
        since: Work from which on it has made others.
    """

    row: int
    group: int
    prompt: int
    member: int
    attempt: int
    slot: int
    start_time: float
    start_version: int
    start_work: float
    length: float
    since: float
    resumed: float = 0.0
    tokens: float = 0.0
    finish_time: float = nan
    ready_time: float = nan
    outcome: SampleOutcome = SampleOutcome.UNDER_WAY
    ready_version: int = 0
    step: int = NO_STEP
    finish_work: float = nan


def empty(*names: str) -> dict[str, list[float]]:
    """Returns columns without rows."""
    return {name: [] for name in names}


def add_row(columns: dict[str, list[float]], *values: float) -> None:
    """Adds a row to columns, its values in their order."""
    for column, value in zip(columns.values(), values, strict=True):
        column.append(value)


class SlotEvents(ABC):
    """Events in slots, and the state of a whole run."""

    def __init__(self, world: RolloutOptions, draws: RolloutDraws) -> None:
        self._world, self._draws = world, draws
        generation = world.generation
        self._machines, self._speeds = generation.machines, generation.speeds()
        self._size, self._complete = generation.group, generation.complete
        self._by_group = generation.admit == "group"
        self._redraws = generation.retry_length == "redrawn"
        self._counts_tokens = world.trainer.samples is None
        self._queue = SampleBuffer(world.queue, world.trainer)
        self.now = self._work = 0.0
        self._anchor, self._pace = (0.0, 0.0), inf
        self._timed: list[tuple[float, int]] = []  # times and kinds of events
        self._running: list[tuple[float, int, Rollout]] = []
        self._free = list(range(generation.num_slots))
        self._generating: dict[int, Rollout] = {}  # by slot
        self._again: deque[tuple[int, int, int, int]] = deque()
        self._fresh = 0  # samples that were started for the first time
        self._groups = 0
        self._admitted = 0
        self._open: dict[int, list[Rollout]] = {}  # of groups that are not ready
        self._left: dict[int, int] = {}  # how many of them are not finished
        self._blocked: list[tuple[list[Rollout], int]] = []
        self._training: list[Rollout] | None = None
        self._version = self._loaded = self._loading = 0
        self._num_loads = 0
        self._wanted = 0
        self._drains = self._paused = self._loads_now = False
        self._looked = -1, -1
        self._trained = 0
        self.samples: list[Rollout] = []
        self.steps = empty(*STEP_COLUMNS)
        self.loads = empty("time", "work", "version")
        add_row(self.loads, 0.0, 0.0, 0)
        self.pieces = empty("sample", "version", "tokens")
        self.seconds: dict[str, float] = dict.fromkeys(
            ("busy", "paused", "blocked"), 0.0
        )

    @abstractmethod
    def _enter(self, samples: list[Rollout]) -> None:
        """Lets a group that is ready into the queue."""

    @abstractmethod
    def _drained(self) -> None:
        """Loads weights that have waited for the last sample under way."""

    def _pass(self, time: float) -> None:
        """Lets time pass, and counts what slots did meanwhile."""
        passed = time - self.now
        if not passed:  # then `work` is exactly that at which a sample has ended
            return
        busy = len(self._running)
        self.seconds["paused" if self._paused else "busy"] += passed * busy
        self.seconds["blocked"] += passed * len(self._blocked)
        if busy and not self._paused:
            since, work = self._anchor
            self._work = work + (time - since) / self._pace
        self.now = time

    def _set_pace(self) -> None:
        """Sets the speed of all busy slots; times follow from here if it changes."""
        pace = inf
        if self._running and not self._paused:
            pace = self._speeds[ceil(len(self._running) / self._machines) - 1]
        if pace != self._pace:
            self._anchor, self._pace = (self.now, self._work), pace

    def _begin(self) -> None:
        while self._has_room and not (self._paused or self._drains):
            found = self._next_sample()
            if found is None:
                break
            self._start(heappop(self._free), *found)
        self._set_pace()

    @property
    def _has_room(self) -> bool:
        """Whether a slot is free, or enough of them where a group begins."""
        if not self._by_group:
            return bool(self._free)
        member = self._again[0][2] if self._again else self._fresh % self._size
        return len(self._free) >= (1 if member else self._size)

    def _next_sample(self) -> tuple[int, int, int, int] | None:
        """Returns group, prompt, member and attempt of the next sample, if it may."""
        if self._again:
            return self._again.popleft()
        level = self._world.generation.max_async_level
        batch = self._world.trainer.samples
        if level is not None and batch is not None:
            lead = (self._version + 1 + level) * batch
            if self._admitted - self._queue.num_withheld(self._version) >= lead:
                return None
        prompt, member = divmod(self._fresh, self._size)
        self._fresh += 1
        self._admitted += 1
        if member == 0:
            self._number = self._open_group()
        return self._number, prompt, member, 0

    def _open_group(self) -> int:
        number, self._groups = self._groups, self._groups + 1
        self._left[number] = self._size
        return number

    def _start(
        self, slot: int, group: int, prompt: int, member: int, attempt: int
    ) -> None:
        drawn, work = attempt if self._redraws else 0, self._work
        length = self._draws.length(prompt, member, drawn)
        sample = Rollout(
            *(len(self.samples), group, prompt, member, attempt, slot, self.now),
            *(self._loaded, work, length, work),
        )
        self.samples.append(sample)
        self._open.setdefault(group, []).append(sample)
        self._generating[slot] = sample
        heappush(self._running, (work + length, sample.row, sample))
        self._set_pace()

    def _finish(self, sample: Rollout) -> None:
        self._end(sample, sample.length)
        samples = self._ready(sample)
        free = [sample.slot]
        if self._by_group:
            free = [each.slot for each in samples]
        if samples and not self._queue.has_room:
            self._blocked.append((samples, sample.slot))
            free.remove(sample.slot)
        elif samples:
            self._enter(samples)
        for slot in free:
            heappush(self._free, slot)
        self._drained()

    def _ready(self, sample: Rollout) -> list[Rollout]:
        """Returns the samples that are ready by the end of one; none if it waits."""
        if not self._complete:
            self._leave(sample)
            return [sample]
        group = sample.group
        self._left[group] -= 1
        if self._left[group]:
            return []
        del self._left[group]
        return self._open.pop(group)

    def _leave(self, sample: Rollout) -> None:
        """Takes a sample out of its group, which may have no other one under way."""
        group = self._open[sample.group]
        group.remove(sample)
        if not group:
            del self._open[sample.group]

    def _end(self, sample: Rollout, tokens: float) -> None:
        """Notes the end of what a slot made, whole or not."""
        sample.finish_time, sample.finish_work = self.now, self._work
        sample.tokens = tokens
        del self._generating[sample.slot]
        self._piece(sample, tokens)

    def _piece(self, sample: Rollout, tokens: float) -> None:
        if self._world.weights.mode == "retract":
            more = tokens - sample.resumed
            add_row(self.pieces, sample.row, self._loaded, more)

    def _made(self, sample: Rollout) -> float:
        return sample.resumed + max(0.0, self._work - sample.since)

    def _abort(self, sample: Rollout) -> None:
        sample.outcome = SampleOutcome.ABORTED
        self._leave(sample)
        self._repeat(sample, sample.group)
        self._end(sample, self._made(sample))

    def _repeat(self, sample: Rollout, group: int) -> None:
        self._again.append((group, sample.prompt, sample.member, sample.attempt + 1))

    def _retract(self) -> None:
        """Lets samples under way compute again what they have, then continue."""
        slower = self._world.weights.recompute
        again = []
        for _, row, sample in self._running:
            made = self._made(sample)
            self._piece(sample, made)
            sample.resumed, sample.since = made, self._work + slower * made
            again.append((sample.since + sample.length - made, row, sample))
        self._running = again
        heapify(self._running)
