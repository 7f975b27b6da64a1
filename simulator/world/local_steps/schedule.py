"""Local steps that change at given virtual times."""

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from ...config.base import LocatedError
from ...timeline import JobSteps
from .base import LocalStepsRule

if TYPE_CHECKING:
    from ..world import World


class StepSchedule(LocalStepsRule):
    """Numbers of local steps, one after the other.

    Before the first change a job has as many as the algorithm says, and never more.
    """

    kind: Literal["schedule"] = "schedule"
    values: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]
    """Numbers of local steps."""
    seconds: tuple[Annotated[float, Field(gt=0)], ...]
    """Virtual seconds from which each of them holds; as many, rising."""

    @model_validator(mode="after")
    def _fits(self) -> "StepSchedule":
        if len(self.seconds) != len(self.values):
            raise LocatedError(
                f"seconds must be as many as the {len(self.values)} values, got "
                f"{len(self.seconds)}; give each value its time",
                ("seconds",),
            )
        if any(late <= early for early, late in pairwise(self.seconds)):
            raise LocatedError(
                f"seconds must rise, got {list(self.seconds)}; sort them", ("seconds",)
            )
        return self

    def start(self, world: "World", steps: JobSteps) -> None:
        """Plans all changes, each before what happens at its instant."""
        for value, at in zip(self.values, self.seconds, strict=True):
            clock = world.clock(at)
            if world.seconds([clock])[0] < at:  # between two ticks
                clock = world.after(at)
            world.call_first(clock, partial(_change, steps), value)


def _change(steps: JobSteps, value: int) -> None:
    steps.change(value)
