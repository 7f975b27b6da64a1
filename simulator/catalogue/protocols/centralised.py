"""Centralised: steps on pooled data, one after the other, without clients."""

from typing import Any, ClassVar, Literal

from ...world.laws.base import AnyLaw
from ...world.laws.distributions import Constant
from ...world.protocol import Protocol, Traits, Turns
from ...world.protocol_abilities import OwnSteps
from ...world.recorders.recorder import Recorder
from ...world.streams import Purpose
from ...world.world import World

POOL = 0
"""The worker that stands for the pooled data."""


class Centralised(OwnSteps, Protocol):
    """Steps on pooled data, without clients."""

    kind: Literal["centralised"] = "centralised"
    traits: ClassVar[Traits] = Traits(pooled=True, has_server=False, common_batch=True)
    step: AnyLaw = Constant(value=1)
    """Law of the duration of one step, virtual seconds."""

    @property
    def free_rule(self) -> Turns:
        return Turns(rounds_are_commits=True)

    def described(self, num_clients: int) -> dict[str, Any]:
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
