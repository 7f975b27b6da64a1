"""The interface of features: additions to the laws of a world's stages.

Each feature is one file, which `features` names; world and cycle depend on none.
Subclasses define presence, message loss and limits on messages; the classes here are
for a world without them.
"""

from collections.abc import Callable
from enum import IntEnum
from math import inf
from typing import ClassVar, NamedTuple

from .streams import Purpose

Then = Callable[[int], object]
"""Called with a client when something has happened to it."""
Duration = Callable[[int, int, float], float]
"""How long a stage takes: of a client, the number of its job, and when it begins."""


class JobCourse(IntEnum):
    """How a job comes from its read to its arrival."""

    PLAIN = 0
    """It computes, and nothing else."""
    PLANNED = 1
    """By several stages, whose ends are known when it reads."""
    WATCHED = 2
    """By stages that something may end, or lengthen, while they last."""


class Feature:
    """An option of a world, which changes the durations or the results of stages."""

    course: ClassVar[JobCourse] = JobCourse.PLANNED
    """The simplest course that jobs may have with it."""
    in_ticks: bool = False
    """Whether times stay on the lattice of the laws."""

    def duration(self, purpose: Purpose, takes: Duration) -> Duration:
        """Returns the duration of a stage with this feature.

        Args:
            purpose: The stage.
            takes: How long it takes without, in the clock's unit.
        """
        return takes

    def stage(self, purpose: Purpose, then: Then) -> Then:
        """Returns the next step of a stage with this feature.

        Args:
            purpose: The stage: `READ`, `DOWNLOAD`, `UPLOAD`, or `SERVICE` of arrivals.
            then: The next step without it.
        """
        return then


class AlwaysThere:
    """Presence of the clients of a world in which all are always there."""

    is_always = True

    def since(self, client: int, time: float) -> float:
        """Returns the earliest moment from `time` on at which a client can begin."""
        return time

    def until(self, client: int, time: float) -> float:
        """Returns when a present client loses the job that it has started."""
        return inf

    def has_left(self, client: int, time: float) -> bool:
        """Returns whether a client has left for ever; needs no later times."""
        return False


class Sending(NamedTuple):
    """How a message fares.

    Attributes:
        sends: Messages sent, lost ones included.
        wait: Seconds after the first sending at which the last one is sent, or after
            which the client stops trying.
        lost: Whether none arrived.
        twice: Whether a copy follows.
    """

    sends: int
    wait: float
    lost: bool
    twice: bool


class Lossless:
    """Uploads of a world in which all messages arrive."""

    _arrives = Sending(1, 0, lost=False, twice=False)

    def send(self, client: int, job: int) -> Sending:
        """Returns the outcome of one job's upload."""
        return self._arrives

    def sends(self, client: int, sends: int, seconds: float) -> int:
        """Returns how many of a job's messages are sent some seconds after the first.

        Args:
            client: Number of the client, from 0.
            sends: Messages that it sends in all.
            seconds: Virtual seconds, >= 0.
        """
        return sends


class Unlimited:
    """Messages of a run in which clients may send as many as they like."""

    def count(self, client: int) -> None:
        """Counts a message that is about to be sent, of a job or another one."""

    def send(self, client: int) -> None:
        """Counts the message of a job that is about to be sent."""

    def expect(self, client: int) -> Then | None:
        """Returns the counter of a started job's message; None for nothing."""

    def has_sent(self, client: int) -> bool:
        """Returns whether the message of the client's job may have been sent."""
        return True

    def counted(self, then: Then) -> Then:
        """Returns a function that counts a client's message before `then`."""
        return then
