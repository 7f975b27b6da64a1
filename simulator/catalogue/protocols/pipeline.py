"""Pipeline: minibatches in the stages of one model, each of which lags by its own."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ...world.laws.base import AnyLaw
from ...world.laws.distributions import Constant
from ...world.protocol import Cadence, Protocol, Traits
from ...world.protocol_abilities import OwnSteps
from ...world.recorders.recorder import Recorder
from ...world.streams import Purpose
from ...world.world import World
from .centralised import POOL
from .routed.recorder import QueueRecorder


class Pipeline(OwnSteps, Protocol):
    """A model in stages that work on successive minibatches; one step a minibatch.

    Each stage computes at its own part of the model as it was when the minibatch came
    to it, so that its delay in steps is fixed once the pipeline is full. A minibatch
    reads when it enters, and its staleness is that of the first stage. Filling the
    pipeline takes no time of its own: the first steps have the delays that they can.

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
    """Law of the duration of one step, virtual seconds."""

    @property
    def delays(self) -> tuple[int, ...]:
        """Steps of delay of each stage, the first one's first."""
        if self.schedule == "2bw":
            return (1,) * self.stages
        return tuple(range(self.stages - 1, -1, -1))

    def described(self, num_clients: int) -> dict[str, Any]:
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
        """Lets the first minibatches in; after each step the next one enters.

        Source: Narayanan et al. (2019), section 3.3.
        """

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
