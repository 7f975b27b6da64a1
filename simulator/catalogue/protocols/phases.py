"""Phases: everyone contributes, then everyone's next arrival is a commit."""

from typing import ClassVar, Literal

from ...world.cycle import Cycle
from ...world.protocol import Cadence, Protocol, Traits
from ...world.recorders.recorder import Recorder
from ...world.world import World


class Phases(Protocol):
    """Rounds of two phases, in which no client waits.

    In the first phase contributions gather until each client has sent one; the arrival
    that ends it makes the first commit. In the second phase each other client's next
    arrival is a commit as well, and later contributions of clients with a commit count
    for the first phase of the next round.

    Source: Maranjyan and Richtarik, Ringleader ASGD (2025), Algorithm 1.
    """

    kind: Literal["phases"] = "phases"
    traits: ClassVar[Traits] = Traits(everyone_works=True)

    @property
    def gathers(self) -> bool:
        return True

    def described(self, num_clients: int) -> dict[str, object]:
        waits = "contributions at the server, until there is one of each client"
        return super().described(num_clients) | {"queues": [waits]}

    def least_clients(self, num_clients: int, *, selected: bool) -> int:
        return num_clients

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        n = num_clients
        return Cadence(1, in_flight + 1, commits_per_round=n, turns_per_round=n)

    def play(self, world: World, recorder: Recorder) -> None:
        _TwoPhases(world, recorder).cycle.start()


class _TwoPhases:
    def __init__(self, world: World, recorder: Recorder) -> None:
        self._recorder = recorder
        self._everyone = frozenset(range(world.num_clients))
        self._missing = set(self._everyone)  # not contributed in the first phase
        self._served: set[int] = set()  # made their commit in the second one
        self._next: set[int] = set()  # contributed to the next round
        self._round = 0
        self.cycle = Cycle(world, recorder.read, self._arrive, recorder.lose)

    def _arrive(self, client: int) -> None:
        recorder = self._recorder
        self._missing.discard(client)
        if client in self._served:
            recorder.contribute(client, self._round, held=True)
            self._next.add(client)
        elif self._missing:
            recorder.contribute(client, self._round)
        else:
            recorder.commit((client,), self._round)
            self._served.add(client)
            if len(self._served) == len(self._everyone):
                self._end_round()
        self.cycle.again(client)

    def _end_round(self) -> None:
        self._recorder.release_held()
        self._missing = set(self._everyone - self._next)
        self._served, self._next = set(), set()
        self._round += 1
