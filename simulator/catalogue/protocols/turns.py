"""Protocols whose steps have durations: one step after the other."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ...world.laws.base import AnyLaw
from ...world.laws.distributions import Constant
from ...world.protocol import Cadence, Protocol, Traits, Turns
from ...world.protocol_abilities import OwnSteps
from ...world.recorders.arrays import NEVER
from ...world.recorders.recorder import Recorder
from ...world.streams import Purpose
from ...world.world import World
from .routed import QueueRecorder

POOL = 0
"""The worker of the pooled data."""


class Centralised(OwnSteps, Protocol):
    """Steps on pooled data, without clients."""

    kind: Literal["centralised"] = "centralised"
    traits: ClassVar[Traits] = Traits(pooled=True, has_server=False, common_batch=True)
    step: AnyLaw = Constant(value=1)
    """Distribution of the duration of one step, virtual seconds."""

    @property
    def free_rule(self) -> Turns:
        return Turns(rounds_are_commits=True)

    def described(self, num_clients: int) -> dict[str, object]:
        return super().described(num_clients) | {
            "entities": "steps on pooled data, without clients, one after the other",
            "stages": {"step": "protocol.step"},
            "closed_forms": {"steps": {}},
        }

    def play(self, world: World, recorder: Recorder) -> None:
        def begin() -> None:
            recorder.read(POOL)
            compute(POOL)

        def finish(worker: int) -> None:
            recorder.commit((worker,), recorder.version)
            begin()

        compute = world.stage(Purpose.STEP, world.budget.counted(finish))
        begin()


class TurnsRecorder(Recorder):
    """The timeline of one run whose clients commit in turn."""

    def commit_after_next_read(self, worker: int, round_: int) -> None:
        """Applies a worker's job once its next one has read the version before."""
        own = self.current(worker)
        self._read_time[worker] = NEVER  # two jobs meet here
        self.read(worker)
        following = self.current(worker)
        self._set(worker, own)
        self.commit((worker,), round_)
        self._set(worker, following)


class Cyclic(OwnSteps, Protocol):
    """Clients commit one after the other, always in the same order.

    Each applies its result on the model of its previous turn. The steps alone take
    time; the clients' own laws play no part.

    Source: MAPA, section 8 (cyclic delayed method); decision M-08.
    """

    kind: Literal["cyclic"] = "cyclic"
    traits: ClassVar[Traits] = Traits(has_server=False, everyone_works=True)
    records: ClassVar[type[Recorder]] = TurnsRecorder
    step: AnyLaw = Constant(value=1)
    """Distribution of the duration of one step, virtual seconds."""
    lag: Literal["K-1", "K"] = "K-1"
    """Staleness from the second turn on: a client takes away the model with its own
    update, or the one just before it."""

    @property
    def free_rule(self) -> Turns:
        return Turns(reads_first=self.lag == "K")

    def described(self, num_clients: int) -> dict[str, object]:
        return super().described(num_clients) | {
            "entities": f"{num_clients} clients; steps, of one client after the other",
            "stages": {"step": "protocol.step"},
            "resources": {"the model, at which one client steps at a time": ""},
        }

    def play(self, world: World, recorder: TurnsRecorder) -> None:
        """Starts the turns; all clients have read the first model.

        A client's staleness is its number, from 0, at its first turn, and then K - 1,
        or K where it reads before its own update. The round is the number of its turn.
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


class Pipeline(OwnSteps, Protocol):
    """A model in stages that work on successive minibatches; one step a minibatch.

    Each stage computes at its own part of the model as it was when the minibatch came
    to it, so that its delay in steps is fixed once the pipeline is full. A minibatch
    reads when it enters, and its staleness is the first stage's. Filling the pipeline
    takes no extra time: the first steps have shorter delays.

    Source: Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN
    Training (2019), section 3.3; `2bw`: Narayanan et al., Memory-Efficient
    Pipeline-Parallel DNN Training (2021), section 3.1.
    """

    kind: Literal["pipeline"] = "pipeline"
    records: ClassVar[type[Recorder]] = QueueRecorder
    traits: ClassVar[Traits] = Traits(pooled=True, has_server=False)
    stages: Annotated[int, Field(ge=1, le=1024)]
    """P, parts of the model, one after the other."""
    schedule: Literal["1f1b", "2bw"] = "1f1b"
    """Delay of a stage, the first of P having number 1: P - s steps (one forward, one
    backward; PipeDream), or one for all (PipeDream-2BW)."""
    step: AnyLaw = Constant(value=1)
    """Distribution of the duration of one step, virtual seconds."""

    @property
    def delays(self) -> tuple[int, ...]:
        """Steps of delay of each stage, the first one's first."""
        if self.schedule == "2bw":
            return (1,) * self.stages
        return tuple(range(self.stages - 1, -1, -1))

    def described(self, num_clients: int) -> dict[str, object]:
        under_way = max(self.delays) + 1
        return super().described(num_clients) | {
            "entities": f"minibatches of pooled data, of which {under_way} are under "
            f"way in the stages of one model; without clients",
            "stages": {"step": "protocol.step"},
            "resources": {f"{self.stages} stages, one after the other": ""},
            "queues": ["minibatches on their way through the stages"],
        }

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        return Cadence(width=1, num_registers=max(self.delays) + 2)

    def play(self, world: World, recorder: QueueRecorder) -> None:
        """Lets the first minibatches in; after each step the next one enters."""

        def begin() -> None:
            recorder.begin(POOL)
            compute(POOL)

        def finish(worker: int) -> None:
            recorder.commit((worker,), recorder.version)
            recorder.send(POOL)
            begin()

        compute = world.stage(Purpose.STEP, world.budget.counted(finish))
        for _ in range(max(self.delays) + 1):
            recorder.send(POOL)
        begin()
