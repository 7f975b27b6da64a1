"""The interface of features: what a world may have besides laws of its stages.

Each feature is a file of its own, which `features` names; world and cycle know none.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import ClassVar

from ..streams import Purpose

Then = Callable[[int], object]
"""Called with a client when something has happened to it."""
Duration = Callable[[int, int, float], float]
"""How long a stage takes: of a client, the number of its job, and when it begins."""


class Course(IntEnum):
    """How a job comes from its read to its arrival."""

    PLAIN = 0
    """It computes, and nothing else."""
    PLANNED = 1
    """By several stages, whose ends are known when it reads."""
    WATCHED = 2
    """By stages that something may end, or lengthen, while they last."""


class Feature:
    """An option of a world, which changes how long stages take or what they lead to."""

    course: ClassVar[Course] = Course.PLANNED
    """The simplest course that jobs may have with it."""
    in_ticks: bool = False
    """Whether times stay on the lattice of the laws."""

    def duration(self, purpose: Purpose, takes: Duration) -> Duration:
        """Returns how long a stage takes with this feature.

        Args:
            purpose: The stage.
            takes: How long it takes without, in the clock's unit.
        """
        return takes

    def stage(self, purpose: Purpose, then: Then) -> Then:
        """Returns what a stage leads to with this feature.

        Args:
            purpose: The stage: `READ`, `DOWNLOAD`, `UPLOAD`, or `SERVICE` of arrivals.
            then: What it leads to without.
        """
        return then
