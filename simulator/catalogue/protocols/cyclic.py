"""Cyclic: clients commit one after the other, always in the same order."""

from typing import Any, ClassVar, Literal

from ...world.clients import Clients, Server
from ...world.laws.base import AnyLaw
from ...world.laws.distributions import Constant
from ...world.protocol import Protocol, Traits, Turns, refuse_selection
from ...world.protocol_abilities import OwnSteps
from ...world.recorders.recorder import Recorder
from ...world.streams import Purpose
from ...world.world import World


class TurnsRecorder(Recorder):
    """The timeline of one run whose clients commit in turn."""

    def commit_after_next_read(self, worker: int, round_: int) -> None:
        """Applies a worker's job once its next one has read the version before."""
        own = self.current(worker)
        self.read(worker)
        following = self.current(worker)
        self._set(worker, own)
        self.commit((worker,), round_)
        self._set(worker, following)


class Cyclic(OwnSteps, Protocol):
    """Clients commit one after the other, always in the same order.

    Each applies what it computed on the model of its previous turn. The steps alone
    take time; the clients' own laws play no part.

    Source: MAPA, section 8 (cyclic delayed method); decision M-08.
    """

    kind: Literal["cyclic"] = "cyclic"
    traits: ClassVar[Traits] = Traits(has_server=False)
    records: ClassVar[type[Recorder]] = TurnsRecorder
    step: AnyLaw = Constant(value=1)
    """Law of the duration of one step, virtual seconds."""
    lag: Literal["K-1", "K"] = "K-1"
    """Staleness from the second turn on: a client takes away the model with its own
    update, or the one just before it."""

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        refuse_selection(self.kind, clients)

    @property
    def free_rule(self) -> Turns:
        return Turns(reads_first=self.lag == "K")

    def described(self, num_clients: int) -> dict[str, Any]:
        return super().described(num_clients) | {
            "entities": f"{num_clients} clients; steps, of one client after the other",
            "stages": {"step": "protocol.step"},
            "resources": {"the model, at which one client steps at a time": ""},
        }

    def play(self, world: World, recorder: TurnsRecorder) -> None:
        """Starts the turns; all clients have read the first model.

        A client's staleness is its number, from 0, at its first turn, and then K - 1,
        or K where it reads before its own update. The round is the number of its turn.

        Source: MAPA, section 8; decision M-08.
        """
        num_clients = world.num_clients
        reads_first = self.lag == "K"

        def finish(client: int) -> None:
            turn = recorder.version // num_clients
            if reads_first:
                recorder.commit_after_next_read(client, turn)
            else:
                recorder.commit((client,), turn)
                recorder.read(client)
            step((client + 1) % num_clients)

        for client in range(num_clients):
            recorder.read(client)
        step = world.stage(Purpose.STEP, world.budget.counted(finish))
        step(0)
