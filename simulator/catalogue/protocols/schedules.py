"""Numbers of contributions that change during a run."""

from itertools import pairwise
from typing import Annotated

from pydantic import Field, model_validator

from ...parts.base import Config, LocatedError, Rule
from ...parts.stop import Count, Seconds
from ...world.recorders.recorder import Recorder
from ...world.world import World


class CountSchedule(Config):
    """A whole number that changes at given commits or virtual times.

    Source: Dutta, Wang and Joshi, Slow and Stale Gradients Can Win the Race (2021),
    section 5 (AdaSync: the number that a step waits for grows).
    """

    values: Annotated[tuple[Count, ...], Field(min_length=2)]
    """The numbers, one after the other."""
    commits: tuple[Count, ...] | None = None
    """Commits after which the next value holds; rising, one fewer than values."""
    seconds: tuple[Seconds, ...] | None = None
    """Or the virtual seconds from which it holds."""

    @model_validator(mode="after")
    def _fits(self) -> "CountSchedule":
        if (self.commits is None) == (self.seconds is None):
            raise ValueError(
                "must have either commits or seconds; write for example values: "
                "[1, 10], commits: [500]"
            )
        name = "commits" if self.seconds is None else "seconds"
        if len(self._bounds) != len(self.values) - 1:
            raise LocatedError(
                f"{name} must be one fewer than the {len(self.values)} values, got "
                f"{len(self._bounds)}; the first value holds from the start",
            )
        if any(late <= early for early, late in pairwise(self._bounds)):
            raise LocatedError(
                f"{name} must rise, got {list(self._bounds)}; sort them", (name,)
            )
        return self

    @property
    def _bounds(self) -> tuple[float, ...]:
        return self.commits or self.seconds or ()

    def at(self, commits: int, seconds: float) -> int:
        """Returns the number that holds after some commits, at a virtual time."""
        reached = commits if self.seconds is None else seconds
        return self.values[sum(bound <= reached for bound in self._bounds)]


Scheduled = Annotated[
    Count | CountSchedule,
    Rule(
        "a whole number at least 1, or values that change",
        "10 or {values: [1, 10], commits: [500]}",
    ),
]
"""A number for the whole run, or numbers by commit or by virtual time."""


def now(count: Scheduled, world: World, recorder: Recorder) -> int:
    """Returns a number as it holds now."""
    if isinstance(count, int):
        return count
    return count.at(recorder.version, float(world.seconds([world.env.now])[0]))


def most(count: Scheduled) -> int:
    """Returns the largest value of a number."""
    return count if isinstance(count, int) else max(count.values)


def fewest(count: Scheduled) -> int:
    """Returns the smallest value of a number."""
    return count if isinstance(count, int) else min(count.values)
