"""Numbers of local steps that change: a schedule, or AdaComm."""

from abc import abstractmethod
from fractions import Fraction
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from ..files.job_steps import JobSteps
from ..parts.base import LocatedError
from ..parts.errors import ScenarioError
from ..parts.expressions import up
from .answers import Asking
from .cycle import Duration, Feature, JobCourse, Then
from .streams import Purpose

if TYPE_CHECKING:
    from .world import World


class LocalStepsRule(Asking):
    """How the local steps of jobs change during a run: its options."""

    @abstractmethod
    def start(self, world: "World", steps: JobSteps) -> None:
        """Starts to change them."""


class StepSchedule(LocalStepsRule):
    """Numbers of local steps, one after the other.

    Before the first change a job has the algorithm's number, and never more.
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
            )
        if any(late <= early for early, late in pairwise(self.seconds)):
            raise LocatedError(
                f"seconds must rise, got {list(self.seconds)}; sort them"
            )
        return self

    def start(self, world: "World", steps: JobSteps) -> None:
        """Plans all changes, each before the other events of its instant."""
        for value, at in zip(self.values, self.seconds, strict=True):
            clock = world.clock(at)
            if world.seconds([clock])[0] < at:  # between two ticks
                clock = world.after(at)
            world.call_first(clock, steps.change, value)


class AdaComm(LocalStepsRule):
    """Fewer local steps as the objective falls, and fewer still where it does not.

    After each interval of T_0 seconds, with F as last evaluated and F_0 before the
    first step,

        tau_l = ceil(sqrt(F / F_0) tau_0) if that is below tau_{l-1}
                ceil(gamma tau_{l-1}) else

    where tau_0 is the algorithm's number. It is set just after the end of an interval,
    so that an evaluation at that instant counts: `evaluate: {every: {time: T_0}}` is
    the paper's.

    Source: Wang and Joshi, Adaptive Communication Strategies to Achieve the Best
    Error-Runtime Trade-off in Local-Update SGD (2019), section 4, with constant step
    sizes; that gamma tau is rounded up, so that a job has a step, is ours. The paper
    was not at hand: its first rule agrees with a public program of others, its second,
    with gamma, is cited from memory.
    """

    kind: Literal["adacomm"] = "adacomm"
    asks: ClassVar[tuple[str, ...]] = ("metrics",)
    interval: Annotated[float, Field(gt=0)]
    """T_0, virtual seconds."""
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """gamma."""
    metric: str = "objective"
    """Metric that is F; `evaluate.metrics` must have it."""

    @property
    def needed_metrics(self) -> tuple[str, ...]:
        return (self.metric,)

    def start(self, world: "World", steps: JobSteps) -> None:
        _Falling(self, world, steps).start()


class _Falling:
    def __init__(self, config: AdaComm, world: "World", steps: JobSteps) -> None:
        self._config, self._world, self._steps = config, world, steps
        self._first = 0.0  # F_0
        self._tau = steps.most

    def start(self) -> None:
        self._world.ask(self._begin, 0)

    def _begin(self, _: int) -> None:
        self._first = self._objective()
        if not self._first > 0:
            raise ScenarioError(
                f"clients.local_steps_by.metric must be above 0 at the start, got "
                f"{self._first:g} of {self._config.metric}; take another metric"
            )
        self._plan(1)

    def _plan(self, number: int) -> None:
        if self._world.is_over:
            return  # or a run in which nothing can happen would not end
        end = float(Fraction(repr(self._config.interval)) * number)
        self._world.num_timers += 1
        self._world.call_at(self._world.after(end), self._ask, number)

    def _ask(self, number: int) -> None:
        self._world.num_timers -= 1
        self._world.ask(self._change, number)

    def _change(self, number: int) -> None:
        share = min(self._objective() / self._first, 1.0)
        tau = up(sqrt(share) * self._steps.most) if share >= 0 else self._tau
        if tau >= self._tau:
            tau = up(self._config.factor * self._tau)
        self._tau = max(tau, 1)
        self._steps.change(self._tau)
        self._plan(number + 1)

    def _objective(self) -> float:
        assert self._world.answers is not None
        return self._world.answers.metrics[self._config.metric]


class GivenSteps(Feature):
    """Jobs whose local steps are set when they read.

    Attributes:
        steps: As given.
    """

    course: ClassVar[JobCourse] = JobCourse.PLAIN
    in_ticks = True

    def __init__(self, world: "World", steps: JobSteps) -> None:
        self._world, self.steps = world, steps

    @override
    def duration(self, purpose: Purpose, takes: Duration) -> Duration:
        world, steps = self._world, self.steps
        if purpose is not Purpose.COMPUTE:
            return takes
        configs = [world.groups[number].config for number in world.groups.of]
        amounts = [amount for group in world.groups for amount in group.amounts]

        def compute(client: int, job: int, time: float) -> float:
            config = configs[client]
            if config.compute_per == "job":
                return takes(client, job, time)
            number = world.recorder.current_job(client)
            amount = amounts[client] * (steps.of_job(client, number) / steps.most)
            if config.adds_draws:
                return sum(takes(client, job, time) for _ in range(round(amount)))
            return takes(client, job, time) * amount

        return compute

    @override
    def stage(self, purpose: Purpose, then: Then) -> Then:
        if purpose is not Purpose.READ:
            return then

        def read(client: int) -> None:
            then(client)
            self.steps.give(client, self._world.recorder.current_job(client))

        return read
