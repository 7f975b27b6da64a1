"""The clients' world: events in virtual time, clients, and what all of them share."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from heapq import heappush
from math import nextafter
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import simpy
from simpy.events import NORMAL, URGENT, EventPriority

from ..files.job_steps import JobSteps
from ..files.timeline import Incident
from .clients import Clients, Server
from .cycle import (
    AlwaysThere,
    Cycle,
    Duration,
    JobCourse,
    Lossless,
    Then,
    Unlimited,
    Way,
)
from .delays import Delays, Groups
from .features import features, shared_laws
from .laws.base import AnyLaw, Population, common_tick
from .preferences import PreferringPool
from .selection import Pool
from .streams import Purpose, Streams
from .workload import Workload

AFTER_ARRIVALS = EventPriority(NORMAL + 1)
"""Priority of the end of a window: an arrival at that instant is still in it."""


class Clock:
    """Virtual time, and its events.

    Attributes:
        env: SimPy's clock.
        tick: Seconds of its unit; None for a second.
        num_timers: Events planned of rules that come again and again, whatever else
            happens.
    """

    def __init__(self) -> None:
        self.env = self._clock()
        self.tick: Fraction | None = None
        self.num_timers = 0

    def _clock(self) -> simpy.Environment:
        return simpy.Environment(initial_time=0)

    def seconds(self, times: Sequence[int | float] | np.ndarray) -> np.ndarray:
        """Converts the clock's times to virtual seconds, float64."""
        if self.tick is None:
            return np.asarray(times, np.float64)
        ticks = np.asarray(times, np.int64)
        return ticks * self.tick.numerator / self.tick.denominator

    def clock(self, seconds: float) -> int | float:
        """Converts virtual seconds to the clock's last time that is no later."""
        if self.tick is None:
            return seconds
        return int(Fraction(repr(seconds)) / self.tick)

    def after(self, seconds: float) -> int | float:
        """Converts virtual seconds to the clock's first time that is later."""
        if self.tick is None:
            return nextafter(seconds, np.inf)
        return self.clock(seconds) + 1

    def call(self, delay: float, then: Then, argument: int) -> None:
        """Calls a function after a delay in the clock's unit."""
        self.call_at(self.env._now + delay, then, argument)

    def call_after(self, delay: float, then: Then, argument: int) -> None:
        """Does the same, without an event where there is no delay."""
        if delay > 0:
            self.call(delay, then, argument)
        else:
            then(argument)

    def call_at(self, time: float, then: Then, argument: int) -> None:
        """Calls a function at a time of the clock, or now if that is past."""
        env = self.env
        schedule(env, max(time, env._now), _happen, (then, argument))

    def call_first(self, time: float, then: Then, argument: int) -> None:
        """Calls a function at a time of the clock, before the other events then."""
        env = self.env
        schedule(env, max(time, env._now), _happen, (then, argument), URGENT)

    def call_last(self, delay: float, then: Then, argument: int) -> None:
        """Calls a function after a delay, when all arrivals of that instant are in."""
        env = self.env
        schedule(env, env._now + delay, _happen, (then, argument), AFTER_ARRIVALS)

    def ask(self, then: Then, argument: int) -> None:
        """Calls a function when the answers are those of all rows so far.

        That is at this instant, before anything else happens; to be called last.
        """
        env = self.env
        schedule(env, env._now, _ask, (then, argument), URGENT)

    @property
    def is_over(self) -> bool:
        """Returns whether only recurring events are planned."""
        return len(self.env._queue) <= self.num_timers


class Question(Exception):  # noqa: N818
    """A world needs the results of its rows before it continues."""

    def __init__(self, then: Then, argument: int) -> None:
        self._then, self._argument = then, argument

    def resume(self, clock: Clock) -> None:
        """Resumes the work that needs the answers."""
        clock.call_first(clock.env._now, self._then, self._argument)


def schedule(
    env: simpy.Environment,
    time: float,
    callback: Callable[[simpy.Event], None],
    value: object,
    priority: EventPriority = NORMAL,
) -> None:
    """Does what simpy.Timeout does, for a time and not a delay, and checks nothing.

    No time here is before now or not finite: laws give no such durations.
    """
    event = simpy.Event(env)
    event._ok, event._value, event.callbacks = True, value, [callback]
    heappush(env._queue, (time, priority, next(env._eid), event))


def _ask(event: simpy.Event) -> None:
    raise Question(*event._value)


def _happen(event: simpy.Event) -> None:
    then, argument = event._value
    then(argument)


if TYPE_CHECKING:
    from .answers import Answers
    from .recorders.recorder import Recorder

AnyFeature = TypeVar("AnyFeature")
Timing = tuple[float, float, float, float, int]
"""When a job started, was computed, sent and arrived, and its uploads."""


class World(Clock):
    """A clock, its clients, and the resources that they share.

    Args:
        clients: Laws of the clients; None for a world without clients.
        num_clients: Number of clients.
        seed: Seed of the run.
        step: Law of a step without clients, for the centralised protocol.
        server: Resources that all clients share.
        workload: Work and messages of a client's job.
        lattice: Whether the clock may tick, where all laws are on a lattice.
        job_steps: Local steps of each job, where they change; None where all have those
            of the workload.

    Attributes:
        groups: Groups of clients, one after the other.
        features: Its additions to the laws of its stages; those that act first are the
            first.
        pool: Clients who wait to be selected; None where everyone works.
        timing: Of each client's job; None where nothing comes between its read and its
            arrival.
        recorder: Records the events; it is set before a protocol starts, as the next
            two are.
        budget: Messages that clients may send before the run ends.
        answers: The training's answers, in an adaptive world.

    Raises:
        ScenarioError: a law that gives impossible durations, or parts that do not fit.
        DataError: a file of measurements that is missing or damaged.
    """

    def __init__(
        self,
        clients: Clients | None,
        num_clients: int,
        seed: int,
        step: AnyLaw | None = None,
        server: Server | None = None,
        workload: Workload | None = None,
        *,
        lattice: bool = True,
        job_steps: JobSteps | None = None,
    ) -> None:
        super().__init__()
        self.num_clients, self.streams = num_clients, Streams(seed)
        self.workload = workload or Workload()
        self.timing: list[Timing | None] = [None] * num_clients
        self.recorder: Recorder
        self.budget: Unlimited = Unlimited()
        self.answers: Answers | None = None
        everyone, summed = Population(num_clients, self.streams), job_steps is None
        self.groups = Groups(clients, everyone, self.workload, summed=summed)
        server = server or Server()
        self.features = list(features(self, clients, server, job_steps))
        self.presence = self.feature(AlwaysThere) or AlwaysThere()
        self.losses = self.feature(Lossless) or Lossless()
        self.pool: Pool | None = None
        if clients is not None and (selection := clients.selection) is not None:
            kind = Pool if selection.prefer is None else PreferringPool
            self.pool = kind(selection, self)
        shared = {
            at: law.make(everyone._replace(stage=at.name.lower()))
            for at, law in shared_laws(clients, server, step).items()
        }
        ticks = lattice and not (self.pool and self.pool.is_rated)
        if ticks and all(feature.in_ticks for feature in self.features):
            laws = [law for group in self.groups for law in group.laws.values()]
            self.tick = common_tick([*laws, *shared.values()])
        self.delays = Delays(self, shared)
        ways = (Purpose.COMPUTE, Purpose.UPLOAD, Purpose.DOWNLOAD)
        self._durations = {purpose: self._duration(purpose) for purpose in ways}

    def feature(self, kind: type[AnyFeature]) -> AnyFeature | None:
        """Returns the feature of a kind; None where the world has none."""
        return next((found for found in self.features if isinstance(found, kind)), None)

    @property
    def is_plain(self) -> bool:
        """Whether nothing can come between a client's read and its arrival."""
        return not self.features or self._course is JobCourse.PLAIN

    @property
    def _course(self) -> JobCourse:
        return max((each.course for each in self.features), default=JobCourse.PLAIN)

    def way(self, cycle: Cycle, *, stops: bool) -> Way:
        """Returns how clients pass through a cycle, as the features need it."""
        course = JobCourse.WATCHED if stops else self._course
        if course is JobCourse.PLAIN:
            return Way(cycle)
        from .planned import PlannedWay, watched

        return (PlannedWay if course is JobCourse.PLANNED else watched)(cycle)

    def stage(self, purpose: Purpose, then: Then) -> Then:
        """Returns a function that lets a client pass a stage, and then calls `then`.

        A stage that takes no time is `then` itself.
        """
        draw = self.delays.draws.get(purpose)
        if draw is None:
            return then
        env = self.env

        def ended(event: simpy.Event) -> None:
            then(event._value)  # the property costs as much as the call

        def wait(client: int) -> None:
            schedule(env, env._now + draw(client), ended, client)

        return wait

    def at(self, purpose: Purpose, then: Then) -> Then:
        """Returns the next step of a stage, `then` and any features' additions."""
        for feature in self.features:
            then = feature.stage(purpose, then)
        return then

    def draw(self, purpose: Purpose, client: int) -> int | float:
        """Returns the client's next duration of a stage, in the clock's unit; or 0."""
        draw = self.delays.draws.get(purpose)
        return draw(client) if draw else 0

    def transit(
        self, way: Purpose, client: int, time: float | None = None, job: int = 0
    ) -> float:
        """Returns the time that a message takes on the client's own link.

        Args:
            way: `UPLOAD` or `DOWNLOAD`.
            client: Number of the client, from 0.
            time: Time of the clock at which it is sent; None for now.
            job: Number of its job.
        """
        return self._durations[way](client, job, self.env.now if time is None else time)

    def computing(self, client: int, job: int, start: float) -> float:
        """Returns the duration of computing of a client's next job.

        Args:
            client: Number of the client, from 0.
            job: Number of its job.
            start: Time at which it begins to compute.
        """
        return self._durations[Purpose.COMPUTE](client, job, start)

    def _duration(self, purpose: Purpose) -> Duration:
        draw = self.delays.draws.get(purpose, lambda client: 0)
        takes: Duration = lambda client, job, time: draw(client)  # noqa: E731
        for feature in self.features:
            takes = feature.duration(purpose, takes)
        return takes

    def present_since(self, client: int, time: float) -> float:
        """Returns the earliest moment from `time` on at which a client can begin."""
        return self.presence.since(client, time)

    def present_until(self, client: int, time: float) -> float:
        """Returns when a present client loses the job that it has started."""
        return self.presence.until(client, time)

    def has_left(self, client: int, time: float) -> bool:
        """Returns whether a client has left for ever; needs no later times."""
        return self.presence.has_left(client, time)

    def note(self, time: float, client: int, what: Incident, count: int = 1) -> None:
        """Writes down an incident, at a time in the clock's unit."""
        self.recorder.note(time, client, what, count)
