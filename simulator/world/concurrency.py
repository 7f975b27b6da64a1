"""Concurrency that follows from the staleness of arrived contributions."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from ..parts.base import Part
from .cycle import Feature, JobCourse, Then
from .streams import Purpose

if TYPE_CHECKING:
    from .world import World

Limit = Callable[[int], int]
"""Takes up a contribution, by the commits since it was read; returns how many jobs may
be under way from now on."""


class Concurrency(Part):
    """Number of running jobs as a function of arrivals: its options."""

    @abstractmethod
    def make(self, most: int) -> Limit:
        """Returns the limit during one run.

        Args:
            most: Jobs under way at the start, and never more.
        """


class Limited(Feature):
    """A limit of jobs under way that changes with each arrival."""

    course: ClassVar[JobCourse] = JobCourse.PLAIN
    in_ticks = True

    def __init__(self, world: "World", rule: Concurrency) -> None:
        self._world, self._rule = world, rule

    @override
    def stage(self, purpose: Purpose, then: Then) -> Then:
        if purpose is not Purpose.SERVICE:
            return then
        recorder, pool = self._world.recorder, self._world.pool
        assert pool is not None
        limit = self._rule.make(pool.in_flight)

        def arrive(client: int) -> None:
            pool.in_flight = limit(recorder.staleness(client))
            then(client)

        return arrive


class SteadyStaleness(Concurrency):
    """Jobs under way that make contributions as stale as a target, on average.

    With C jobs always running and Z contributions per commit, the mean staleness is
    (C - 1) / Z for any times, so that Z follows from the arrivals. The next number is
    1 + Z target, rounded, from 2 to `concurrency`; a staleness sum of zero counts as
    one commit. After a change, as many contributions are skipped as jobs were running,
    because most of them had read before.

    Source: Little's law over commits, as in `protocol.size_by: {kind: staleness}`;
    setting the number by it follows, and is from no paper that we know.
    """

    kind: Literal["staleness"] = "staleness"
    target: Annotated[float, Field(gt=0)]
    """Mean staleness, commits."""
    every: Annotated[int, Field(ge=1)] = 100
    """Contributions of which the mean is taken."""

    def make(self, most: int) -> Limit:
        return _Steady(self, most).arrived


class _Steady:
    def __init__(self, config: SteadyStaleness, most: int) -> None:
        self._config, self._most = config, most
        self._jobs, self._passed_over = most, most
        self._sum = self._number = 0

    def arrived(self, staleness: int) -> int:
        if self._passed_over:
            self._passed_over -= 1
            return self._jobs
        self._sum += staleness
        self._number += 1
        if self._number == self._config.every:
            before, mean = self._jobs, max(self._sum, 1) / self._number
            self._sum = self._number = 0
            wanted = 1 + (before - 1) * self._config.target / mean
            self._jobs = min(max(round(min(wanted, self._most)), 2), self._most)
            if self._jobs != before:
                self._passed_over = max(before, self._jobs)
        return self._jobs
