"""A scenario of asynchronous reinforcement learning, for `stalesim timeline`."""

from typing import ClassVar, Literal

from pydantic import model_validator

from ..scenario.setting import Varied
from .world.options import RolloutOptions, check_rollouts


class RolloutScenario(Varied, RolloutOptions):
    """Who generates, queues and trains samples; without numerics."""

    of_samples: ClassVar[bool] = True
    record: Literal["everything", "summary"] = "everything"
    """`summary` leaves out the table of samples, which grows with the horizon."""

    @model_validator(mode="after")
    def _fits(self) -> "RolloutScenario":
        check_rollouts(self)
        return self
