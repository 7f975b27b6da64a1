"""Stale-synchronous parallel: no client is many jobs ahead of the slowest."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ...world.cycle import Cycle
from ...world.protocol import Protocol, Traits
from ...world.recorders.recorder import Recorder
from ...world.world import World


class StaleSynchronous(Protocol):
    """Each arrival is a commit; a client too far ahead of the slowest waits to read.

    A client's clock counts its commits. It reads once its clock is at most `slack`
    above the smallest of all clients that have not left. With 0 a client begins no job
    before all have done theirs. The protocol `asynchronous` with `beyond: wait` bounds
    the staleness of each contribution instead, in commits of all clients, for which
    few may work at a time; here all may, and the staleness of n clients is at most
    (n - 1) (2 slack + 1).

    Source: Ho et al., More Effective Distributed ML via a Stale Synchronous Parallel
    Parameter Server (2013), section 2.
    """

    kind: Literal["ssp"] = "ssp"
    like: ClassVar[str] = "asynchronous"
    traits: ClassVar[Traits] = Traits(everyone_works=True, lone_jobs=True)
    slack: Annotated[int, Field(ge=0)]
    """Clocks, s, that a client may be ahead of the slowest."""

    def described(self, num_clients: int) -> dict[str, object]:
        waits = "clients that are too far ahead of the slowest wait to read"
        return super().described(num_clients) | {"queues": [waits]}

    def play(self, world: World, recorder: Recorder) -> None:
        _Clocks(self.slack, world, recorder).cycle.start()


class _Clocks:
    def __init__(self, slack: int, world: World, recorder: Recorder) -> None:
        self._slack, self._recorder = slack, recorder
        self._clocks = dict.fromkeys(range(world.num_clients), 0)
        self._slowest, self._behind = 0, world.num_clients  # clock, and who have it
        self._parked: list[int] = []  # all of them slack + 1 ahead of the slowest
        self.cycle = Cycle(
            *(world, recorder.read, self._arrive, recorder.lose, self._left),
            admit=self._admit,
        )

    def _admit(self, client: int) -> bool:
        if self._clocks[client] <= self._slowest + self._slack:
            return True
        self._parked.append(client)
        return False

    def _arrive(self, client: int) -> None:
        self._recorder.commit((client,))
        self._clocks[client] += 1
        self._leave(self._clocks[client] - 1)
        self.cycle.again(client)

    def _left(self, client: int) -> None:
        self._leave(self._clocks.pop(client))

    def _leave(self, clock: int) -> None:
        """Lets parked clients read if the last one at the smallest clock is past it."""
        self._behind -= clock == self._slowest
        if self._behind or not self._clocks:
            return
        self._slowest = min(self._clocks.values())
        self._behind = sum(c == self._slowest for c in self._clocks.values())
        parked, self._parked = self._parked, []
        for each in parked:
            self.cycle.resume(each)
