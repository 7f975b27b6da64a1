"""Slots that make samples: their clock of work, and how samples begin and end."""

from abc import ABC, abstractmethod
from collections import deque
from heapq import heapify, heappop, heappush
from math import ceil, inf, nan
from typing import Any

from ....config.errors import ScenarioError
from .buffer import SampleBuffer
from .draws import RolloutDraws
from .options import RolloutOptions
from .record import NO_STEP, SampleOutcome

LOADED, STEP_END, REPAIR, FINISH, FAIL = range(5)
"""Events, in their order at one instant."""
MOST_LOST = 1000
"""Samples that each slot loses during a step, beyond which the world stands still."""
SAMPLE_COLUMNS = (
    *("group", "prompt", "member", "attempt", "slot", "tokens", "start_time"),
    *("finish_time", "ready_time", "outcome", "start_version", "ready_version"),
    *("step", "start_work", "finish_work"),
)
STEP_COLUMNS = ("start_time", "end_time", "samples", "tokens", "left")


def empty(*names: str) -> dict[str, list[Any]]:
    """Returns columns without rows."""
    return {name: [] for name in names}


def add_row(columns: dict[str, list[Any]], *values: Any) -> None:
    """Adds a row to columns, its values in their order."""
    for column, value in zip(columns.values(), values, strict=True):
        column.append(value)


class SlotEvents(ABC):
    """What happens in slots, and the state of a whole run.

    Args:
        world: Options of the world.
        draws: Random numbers of the run.
    """

    def __init__(self, world: RolloutOptions, draws: RolloutDraws) -> None:
        self._world, self._draws = world, draws
        generation = world.generation
        self._machines, self._speeds = generation.machines, generation.speeds()
        self._size, self._complete = generation.group, generation.complete
        self._redraws = generation.retry_length == "redrawn"
        self._counts_tokens = world.trainer.samples is None
        self._queue = SampleBuffer(world.queue, world.trainer)
        self.now = self._work = 0.0
        self._anchor, self._pace = (0.0, 0.0), inf
        self._timed: list[tuple[float, int, int, Any]] = []
        self._ordinal = 0
        self._running: list[tuple[float, int]] = []
        self._free = list(range(generation.num_slots))
        self._is_down: set[int] = set()
        self._failed: dict[int, int] = {}
        self._generating: dict[int, int] = {}  # sample of a slot
        self._length: dict[int, float] = {}
        self._again: deque[tuple[int, int, int, int]] = deque()
        self._lost = 0  # samples in failures since the last step ended
        self._fresh = 0  # samples that were started for the first time
        self._groups = 0
        self._admitted = 0
        self._open: dict[int, list[int]] = {}  # samples of groups that are not ready
        self._left: dict[int, int] = {}  # how many of them are not finished
        self._blocked: list[tuple[int, list[int], int]] = []
        self._training: list[int] | None = None
        self._version = self._loaded = self._loading = 0
        self._num_loads = 0
        self._wanted = 0
        self._drains = self._paused = self._loads_now = False
        self._looked = -1, -1
        self._trained = 0
        self.samples = empty(*SAMPLE_COLUMNS)
        self.steps = empty(*STEP_COLUMNS)
        self.loads = empty("time", "work", "version")
        add_row(self.loads, 0.0, 0.0, 0)
        self.pieces = empty("sample", "version", "tokens")
        self._resumed: dict[int, tuple[float, float]] = {}
        self.seconds: dict[str, float] = dict.fromkeys(
            ("busy", "paused", "blocked", "down"), 0.0
        )

    @abstractmethod
    def _enter(self, group: int, rows: list[int]) -> None:
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
        self.seconds["down"] += passed * len(self._is_down)
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

    def _at(self, time: float, kind: int, what: Any) -> None:
        self._ordinal += 1
        heappush(self._timed, (time, kind, self._ordinal, what))

    def _begin(self) -> None:
        """Lets free slots begin samples, as far as they may."""
        while self._free and not (self._paused or self._drains):
            found = self._next_sample()
            if found is None:
                break
            self._start(heappop(self._free), *found)
        self._set_pace()

    def _next_sample(self) -> tuple[int, int, int, int] | None:
        """Returns group, prompt, member and attempt of the next sample, if it may."""
        if self._again:
            return self._again.popleft()
        level = self._world.generation.max_async_level
        batch = self._world.trainer.samples
        if level is not None and batch is not None:
            lead = (self._version + 1 + level) * batch
            if self._admitted >= lead:
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
        row = len(self.samples["group"])
        drawn = attempt if self._redraws else 0
        length = self._draws.length(prompt, member, drawn)
        add_row(
            self.samples,
            *(group, prompt, member, attempt, slot, 0.0, self.now, nan, nan),
            *(SampleOutcome.UNDER_WAY, self._loaded, 0, NO_STEP, self._work, nan),
        )
        self._open.setdefault(group, []).append(row)
        self._generating[slot], self._length[row] = row, length
        heappush(self._running, (self._work + length, row))
        self._set_pace()

    def _finish(self, row: int) -> None:
        """Ends a sample; its group may be ready with it."""
        slot = self.samples["slot"][row]
        self._end(row, self._length[row])
        group = self.samples["group"][row]
        rows = self._ready(group, row)
        if rows and not self._queue.has_room:
            self._blocked.append((group, rows, slot))
        else:
            if rows:
                self._enter(group, rows)
            heappush(self._free, slot)
        self._drained()

    def _ready(self, group: int, row: int) -> list[int]:
        """Returns the samples that are ready by the end of one; none if it waits."""
        if not self._complete:
            self._leave(group, row)
            return [row]
        self._left[group] -= 1
        if self._left[group]:
            return []
        del self._left[group]
        return self._open.pop(group)

    def _leave(self, group: int, row: int) -> None:
        """Takes a sample out of its group, which may have no other one under way."""
        self._open[group].remove(row)
        if not self._open[group]:
            del self._open[group]

    def _end(self, row: int, tokens: float) -> None:
        """Notes the end of what a slot made, whole or not."""
        samples = self.samples
        samples["finish_time"][row], samples["finish_work"][row] = self.now, self._work
        samples["tokens"][row] = tokens
        del self._generating[samples["slot"][row]], self._length[row]
        if self._world.weights.mode == "retract":
            done, _ = self._resumed.pop(row, (0.0, 0.0))
            self._piece(row, tokens - done)

    def _piece(self, row: int, tokens: float) -> None:
        """Notes the tokens that a sample got from the version that is loaded."""
        add_row(self.pieces, row, self._loaded, tokens)

    def _made(self, row: int) -> float:
        """Returns the tokens that a sample under way has."""
        start = self.samples["start_work"][row]
        done, since = self._resumed.get(row, (0.0, start))
        return done + max(0.0, self._work - since)

    def _abort(self, row: int) -> None:
        """Stops a sample, which is to be made again."""
        samples = self.samples
        samples["outcome"][row] = SampleOutcome.ABORTED
        group = samples["group"][row]
        self._leave(group, row)
        names = ("group", "prompt", "member", "attempt")
        _, prompt, member, attempt = (samples[name][row] for name in names)
        self._again.append((group, prompt, member, attempt + 1))
        self._end(row, self._made(row))

    def _fail(self, slot: int) -> None:
        number = self._failed.get(slot, 0)
        self._failed[slot] = number + 1
        row = self._generating.get(slot)
        if row is not None:
            self._running = [each for each in self._running if each[1] != row]
            heapify(self._running)
            self._abort(row)
            self._lost += 1
            if self._lost > MOST_LOST * self._world.generation.num_slots:
                raise ScenarioError(
                    f"generation.failures must let samples be finished, got "
                    f"{self._lost:,} failures of them since step {self._version}; "
                    f"raise after, give most_tokens, or set retry_length: redrawn"
                )
        elif slot in self._free:
            self._free.remove(slot)
            heapify(self._free)
        else:  # it holds a finished group, which is safe
            self._at(self.now + self._draws.up(slot, number + 1), FAIL, slot)
            return
        self._is_down.add(slot)
        self._at(self.now + self._draws.down(slot, number), REPAIR, slot)
        self._drained()

    def _retract(self) -> None:
        """Lets samples under way compute again what they have, then continue."""
        slower = self._world.weights.recompute
        again = []
        for _, row in self._running:
            made = self._made(row)
            done, _ = self._resumed.get(row, (0.0, 0.0))
            self._piece(row, made - done)
            begin = self._work + slower * made
            self._resumed[row] = made, begin
            again.append((begin + self._length[row] - made, row))
        self._running = again
        heapify(self._running)
