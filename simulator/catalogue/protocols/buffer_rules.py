"""Rules by which a buffer is not applied as soon as it is full, or not with all.

Each is an option of the protocol `buffered`.
"""

from itertools import takewhile
from typing import TYPE_CHECKING

from ...files.timeline import Outcome
from ...world.cycle import Cycle
from ...world.recorders.recorder import Recorder
from ...world.world import World
from .schedules import Scheduled, now
from .sizes import BufferSize

if TYPE_CHECKING:
    from .buffered import Buffered


def cycle_of(config: "Buffered", world: World, recorder: Recorder) -> Cycle:
    """Returns the clients' cycle by the rule that a protocol names."""
    size = config.size or 1
    if config.grace is not None:
        return Grace(size, config.grace, world, recorder).cycle
    if config.size_by is not None:
        assert isinstance(size, int)
        return Sized(size, config.size_by, world, recorder).cycle
    bound = config.staleness_bound
    assert bound is not None
    return BoundedBuffer(size, bound, config.beyond, world, recorder).cycle


class BoundedBuffer:
    """Applies no contribution that is staler than a bound.

    What is in the buffer stays as stale as it was on arrival. So the rule looks at each
    arrival, and, before and after a commit, at the jobs under way.

    Source: Maranjyan, Tyurin and Richtarik, Ringmaster ASGD (2025), Algorithm 5 (stop).
    """

    def __init__(
        self,
        size: Scheduled,
        bound: int,
        beyond: str,
        world: World,
        recorder: Recorder,
    ) -> None:
        self._size, self._bound, self._beyond = size, bound, beyond
        self._world, self._recorder = world, recorder
        self._read_by: dict[
            int, int
        ] = {}  # of jobs under way: client, version, in order
        self.cycle = Cycle(
            world, self._read, self._arrive, self._lose, stops=beyond == "stop"
        )

    def _read(self, client: int) -> None:
        self._recorder.read(client)
        self._read_by[client] = self._recorder.version

    def _arrive(self, client: int) -> None:
        del self._read_by[client]
        if self._recorder.staleness(client) > self._bound:
            self._recorder.lose(client, Outcome.REJECTED)
        elif self._is_due(1):
            self._recorder.commit((client,))
        else:
            self._recorder.contribute(client)
        self.cycle.again(client)
        if self._beyond == "stop":
            for each in self._behind(self._recorder.version - self._bound - 1):
                self.cycle.stop(each)

    def _lose(self, client: int, outcome: Outcome) -> None:
        self._read_by.pop(client, None)
        self._recorder.lose(client, outcome)
        if self._beyond == "wait" and self._is_due(0):
            self._recorder.commit(())

    def _is_due(self, arriving: int) -> bool:
        """Returns whether the buffer is applied; `arriving` are about to be in it."""
        there = self._recorder.num_buffered + arriving
        if there < now(self._size, self._world, self._recorder):
            return False
        oldest = self._recorder.version - self._bound
        return self._beyond != "wait" or not self._behind(oldest)

    def _behind(self, version: int) -> list[int]:
        """Returns who works on a version that is no newer, by the order of reads."""
        reads = self._read_by
        return list(takewhile(lambda client: reads[client] <= version, reads))


class Grace:
    """Applies arrivals within some seconds of the first together; clients wait.

    With a size, the seconds begin with the arrival that makes the buffer full.
    """

    def __init__(
        self, size: Scheduled, seconds: float, world: World, recorder: Recorder
    ) -> None:
        self._size, self._seconds = size, seconds
        self._world, self._recorder = world, recorder
        self._waiting: list[int] = []
        self._ends = False  # whether the seconds are counted
        self.cycle = Cycle(world, recorder.read, self._arrive, recorder.lose)

    def _arrive(self, client: int) -> None:
        self._recorder.contribute(client)
        self._waiting.append(client)
        if not self._ends and len(self._waiting) >= now(
            self._size, self._world, self._recorder
        ):
            self._ends = True
            self._world.call_last(self._seconds, self._end, 0)

    def _end(self, _: int) -> None:
        self._recorder.commit(())
        self._ends = False
        waiting, self._waiting = self._waiting, []
        for client in sorted(waiting):
            self.cycle.again(client)


class Sized:
    """Applies as many contributions together as a rule says."""

    def __init__(
        self, size: int, rule: BufferSize, world: World, recorder: Recorder
    ) -> None:
        self._world, self._recorder = world, recorder
        self._rule, self._size, self._sizing = rule, size, rule.make()
        self.cycle = Cycle(world, recorder.read, self._arrive, recorder.lose)

    def _arrive(self, client: int) -> None:
        world, recorder = self._world, self._recorder
        self._sizing.arrived(recorder.staleness(client))
        if recorder.num_buffered + 1 < self._size:
            recorder.contribute(client)
            self.cycle.again(client)
            return
        recorder.commit((client,))
        if recorder.version % self._rule.every:
            self.cycle.again(client)
        elif self._rule.asks:
            world.ask(self._resize, client)
        else:
            self._resize(client)

    def _resize(self, client: int) -> None:
        wanted = self._sizing.next(self._size, self._world.answers)
        self._size = self._rule.bounded(wanted, self._size)
        self.cycle.again(client)
