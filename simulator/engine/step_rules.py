"""Step sizes: numbers, or rules by which they change from commit to commit.

A rule is one class, a `StepRule`: its options, checks and the schedule that it makes.
Those of VAFL's theorems are in `vafl/theorems.py`. Plain Python, so that a scenario can
be checked without JAX.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from ..parts.base import LocatedError, Part, Rule
from ..parts.catalogue import AnyPart
from ..parts.errors import ScenarioError
from ..problem.constants import Constants

if TYPE_CHECKING:
    from jaxtyping import Array

Positive = Annotated[float, Field(gt=0)]
OrData = Rule("a number > 0, or data to compute it from the training data", "data")


class Schedule(NamedTuple):
    """A step size scale * (k + offset) ** -power at every commit.

    Attributes:
        scale: Scale of the step sizes, >= 0.
        offset: K_0, commits, > 0.
        power: 0 (constant), 1 (falling like 1/k) or 1/2.
    """

    scale: "float | Array"
    offset: "float | Array"
    power: "float | Array"

    @property
    def is_constant(self) -> bool:
        """Whether it is the same at every commit."""
        return not np.any(self.power)

    def at(self, commits: "Array") -> "Array":
        """Returns the step size once `commits` were made, numbers or arrays, >= 0."""
        return self.scale * (commits + self.offset) ** -self.power


class Steps(NamedTuple):
    """Step sizes that are constant between some commits.

    Attributes:
        values: one more than there are bounds, >= 0.
        bounds: commits from which the next value holds, rising.
    """

    values: "np.ndarray | Array"
    bounds: "np.ndarray | Array"

    @property
    def is_constant(self) -> bool:
        """Whether it is the same at every commit."""
        return bool(np.ptp(self.values) == 0)

    def at(self, commits: "Array") -> "Array":
        """Returns the step size once `commits` were made, >= 0."""
        return self.values[(commits >= self.bounds).sum()]


class StepRule(Part):
    """A rule of step sizes: its options, which a scenario chooses by `kind`."""

    @abstractmethod
    def make(self, constants: Constants) -> Schedule | Steps:
        """Returns the step sizes of all commits, the server's where it has its own.

        Args:
            constants: The problem's, for rules that take them from the data.

        Raises:
            ScenarioError: A constant is needed and not known, or does not fit.
        """

    def of_clients(self, schedule: "Schedule | Steps") -> "Schedule | Steps":
        """Returns the clients' step sizes, given the server's: the same."""
        return schedule

    @property
    def num_values(self) -> int:
        """Values of its `Steps`, in which runs of one program may differ; else 0."""
        return 0


class ConstantStep(StepRule):
    """The same step size at every commit."""

    kind: Literal["constant"] = "constant"
    value: Annotated[float, Field(ge=0)]
    """The step size."""

    def make(self, constants: Constants) -> Schedule:
        return constant(self.value)


class InverseRootStep(StepRule):
    """eta_0 / sqrt(t + 1), or eta_0 / sqrt(T) throughout with a horizon T.

    Source: FedBCD, section 7 (falling); Theorem 2 and its consequences (constant); with
    many parties both are divided by sqrt(K) as well (F-18).
    """

    kind: Literal["inverse_root"] = "inverse_root"
    value: Annotated[float, Field(ge=0)]
    """eta_0."""
    horizon: Annotated[int, Field(ge=1)] | None = None
    """T."""
    by_parties: bool = False
    """Divides by the root of the number of clients or parties."""

    def make(self, constants: Constants) -> Schedule:
        value = self.value / math.sqrt(constants.num_clients if self.by_parties else 1)
        if self.horizon is not None:
            return constant(value / math.sqrt(self.horizon))
        return Schedule(value, 1.0, 0.5)


class PiecewiseStep(StepRule):
    """Constant step sizes between given epochs.

    Source: A(DP)2SGD, section 5.2 (0.4, from epoch 160 on 0.04, from 240 on 0.004).
    """

    kind: Literal["piecewise"] = "piecewise"
    values: Annotated[tuple[Annotated[float, Field(ge=0)], ...], Field(min_length=1)]
    """Step sizes, one after the other."""
    epochs: tuple[Positive, ...]
    """Epochs at which the next value begins; rising, one fewer than values."""

    @model_validator(mode="after")
    def _fits(self) -> "PiecewiseStep":
        if len(self.epochs) != len(self.values) - 1:
            raise LocatedError(
                f"epochs must be one fewer than the {len(self.values)} values, got "
                f"{len(self.epochs)}; the first value begins at 0",
            )
        if any(late <= early for early, late in pairwise(self.epochs)):
            raise LocatedError(f"epochs must rise, got {list(self.epochs)}; sort them")
        return self

    @property
    def num_values(self) -> int:
        return len(self.values)

    def make(self, constants: Constants) -> Steps:
        return _steps(self.values, self.epochs, constants)


class WarmupStep(StepRule):
    """Rises in equal steps, one an epoch, then falls by a factor an epoch.

    Source: A(DP)2SGD, section 5.2 (SWB300): from 0.1 to 1 over ten epochs, then times
    sqrt(1/2) an epoch for ten more.
    """

    kind: Literal["warmup"] = "warmup"
    first: Annotated[float, Field(ge=0)]
    """Step size of the first epoch."""
    value: Annotated[float, Field(ge=0)]
    """Step size of the last epoch of the warm-up."""
    rising: Annotated[int, Field(ge=2, le=10_000)]
    """Epochs of the warm-up."""
    factor: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Factor by which it falls each epoch from then on."""
    falling: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Epochs in which it falls; then it stays."""

    @property
    def num_values(self) -> int:
        return self.rising + self.falling

    def make(self, constants: Constants) -> Steps:
        rising = np.linspace(self.first, self.value, self.rising)
        falling = self.value * self.factor ** np.arange(1, self.falling + 1)
        values = np.concatenate([rising, falling])
        return _steps(values.tolist(), np.arange(1, values.size).tolist(), constants)


if TYPE_CHECKING:
    AnyRule = StepRule
else:
    AnyRule = Annotated[Any, AnyPart("step_sizes")]
"""Any rule of step sizes, of this package or of plug-ins."""
StepSize = Annotated[
    Annotated[float, Field(ge=0)] | AnyRule,
    Rule("a number >= 0, or a rule with a kind", "0.1 or {kind: constant, value: 0.1}"),
]


def resolve(
    rule: StepSize, constants: Constants
) -> tuple[Schedule | Steps, Schedule | Steps]:
    """Resolves a step size to schedules of the clients and of the server.

    Args:
        rule: a number or a rule.
        constants: the problem's, for rules that take them from the data.

    Returns:
        The clients' schedule and the server's.

    Raises:
        ScenarioError: a constant is needed and not known, or the rule's numbers do not
            fit.
    """
    given = rule if isinstance(rule, StepRule) else ConstantStep(value=rule)
    schedule = given.make(constants)
    return given.of_clients(schedule), schedule


def constant(value: float) -> Schedule:
    """Returns the schedule of one step size for all commits."""
    return Schedule(float(value), 1.0, 0.0)


def _steps(
    values: Sequence[float], epochs: Sequence[float], constants: Constants
) -> Steps:
    per_epoch = constants.commits_per_epoch
    if math.isnan(per_epoch):
        raise ScenarioError(
            "algorithm.step_size must not be by epochs if the contributions of a "
            "commit change, because an epoch then has no fixed number of commits; "
            "give a number, or the kind inverse_root"
        )
    return Steps(np.array(values, float), np.array(epochs, float) * per_epoch)
