"""The queue between generation and training: its content, drops, and batches."""

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .options import PolicyTrainer, SampleQueue

if TYPE_CHECKING:
    from .slots import Rollout


class ReadyGroup(NamedTuple):
    """An entry of the queue: a finished group, or a sample of a partial one.

    Attributes:
        place: By which the queue sorts; then by entry.
        entry: Number of its entry, from 0.
        number: By order of start, from 0.
        version: Of its sample that started first; its greatest staleness counts.
        weight: Samples in it, or tokens, as a batch is counted.
        samples: Its samples.
    """

    place: int
    entry: int
    number: int
    version: int
    weight: float
    samples: list["Rollout"]


class SampleBuffer:
    """Ready groups, in the order in which the trainer takes them.

    Attributes:
        weight: Of all groups in it.
        entries: Groups that have entered so far.
        waits: Whether a batch waits for samples that would come before it.
    """

    def __init__(self, queue: SampleQueue, trainer: PolicyTrainer) -> None:
        self._order, self._most_age = queue.order, queue.max_age
        self._dropped, self._batch = queue.dropped, trainer.batch
        self._counts_tokens = trainer.samples is None
        self._most = None if queue.capacity is None else queue.capacity * self._batch
        self._groups: deque[ReadyGroup] = deque()
        self.entries = 0
        self.drops = queue.full == "drop_oldest"
        self.waits = queue.order in ("weight_fifo", "in_order")
        self.by_version = queue.order == "weight_fifo"
        self.weight = 0.0

    def __iter__(self) -> Iterator[ReadyGroup]:
        return iter(self._groups)

    @property
    def has_room(self) -> bool:
        """Whether another group may enter without exceeding the capacity."""
        return self.drops or self._most is None or self.weight < self._most

    def enter(
        self, number: int, version: int, weight: float, samples: list["Rollout"]
    ) -> None:
        """Takes in a group that is ready."""
        place = {
            "ready_first": 0,
            "freshest": -version,
            "weight_fifo": version,
            "in_order": number,
        }[self._order]
        group = ReadyGroup(place, self.entries, number, version, weight, samples)
        self.entries += 1
        self.weight += weight
        if self._order == "ready_first":
            self._groups.append(group)
        else:
            insort(self._groups, group)

    def is_young(self, sample: "Rollout", version: int) -> bool:
        """Says whether a step on a version may train a sample."""
        return self._most_age is None or version - sample.start_version <= (
            self._most_age
        )

    def filling(self, samples: list["Rollout"], version: int) -> list["Rollout"]:
        """Returns the samples that fill a step's batch: all but those withheld."""
        if self._dropped != "withheld":
            return samples
        return [sample for sample in samples if self.is_young(sample, version)]

    def num_withheld(self, version: int) -> int:
        """Returns how many of its samples a step on a version would withhold."""
        if self._dropped != "withheld":
            return 0
        return sum(
            len(group.samples) - len(self.filling(group.samples, version))
            for group in self._groups
        )

    def take(self, first_open: Callable[[], float], version: int) -> list[ReadyGroup]:
        """Returns the groups of the next batch, which leave; none if it must wait.

        Args:
            first_open: Where `waits`: returns the smallest version or number, by the
                order, among unfinished samples; infinite if there is none.
            version: The trainer's, by which samples are withheld.
        """
        if self.weight < self._batch:
            return []
        count, weight, first = 0, 0.0, first_open() if self.waits else 0.0
        for group in self._groups:
            if self.waits and group.place > first:
                return []
            count, weight = count + 1, weight + self._weight_of(group, version)
            if weight >= self._batch:
                break
        if weight < self._batch:  # the sum of the weights had been rounded
            return []
        return self._left([self._groups.popleft() for _ in range(count)])

    def drop_old(self, version: int) -> list[ReadyGroup]:
        """Returns groups that are too old for a step on a version, which leave.

        As those beyond the capacity, they come in the order of their entry.
        """
        if self._most_age is None or self._dropped == "masked":
            return []
        if self._dropped == "withheld":
            groups = self._groups
            dropped = [one for one in groups if not self.filling(one.samples, version)]
        else:
            oldest = version - self._most_age
            dropped = [group for group in self._groups if group.version < oldest]
        dropped.sort(key=lambda group: group.entry)
        return self._without(dropped) if dropped else []

    def drop_over(self) -> list[ReadyGroup]:
        """Returns the first entries, which leave because they exceed the capacity."""
        if self._most is None or not self.drops or self.weight <= self._most:
            return []
        dropped, weight = [], self.weight
        if self._order == "ready_first":
            while weight > self._most:
                dropped.append(self._groups.popleft())
                weight -= dropped[-1].weight
            return self._left(dropped)
        for group in sorted(self._groups, key=lambda group: group.entry):
            if weight <= self._most:
                break
            weight -= group.weight
            dropped.append(group)
        return self._without(dropped)

    def _weight_of(self, group: ReadyGroup, version: int) -> float:
        if self._dropped != "withheld":
            return group.weight
        filling = self.filling(group.samples, version)
        if self._counts_tokens:
            return sum(sample.tokens for sample in filling)
        return len(filling)

    def _without(self, dropped: list[ReadyGroup]) -> list[ReadyGroup]:
        gone = {group.entry for group in dropped}
        kept = [group for group in self._groups if group.entry not in gone]
        self._groups = deque(kept)
        return self._left(dropped)

    def _left(self, groups: list[ReadyGroup]) -> list[ReadyGroup]:
        """Returns groups that have left, without whose weight it is lighter."""
        for group in groups:
            self.weight -= group.weight
        if not self._groups:
            self.weight = 0.0  # sums of tokens are rounded
        return groups
