"""Metrics of a model's evaluation, one record each.

A record has every property of a metric: the function that computes it on the device,
the table column, the label and limits in figures, which way is better, and its
requirements. This package's are in `problem.metrics`; `parts/parts.csv` lists the
records, and plug-ins add theirs.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np

from . import catalogue
from .base import LocatedError, NamedPart, Part, function_at
from .errors import ScenarioError, UserError, suggestion

NUMERICS = "stalesim.simulator.problem"


@dataclass(frozen=True)
class LossPart(NamedPart):
    """The description of a loss.

    Attributes:
        function: `"module:function"` of outputs `[*w, C, S]` and targets, to a loss of
            each sample, `[*w, S]`: of classes `[*w, S]`, or of numbers `[*w, C, S]`,
            whose losses are meant over `C`.
        targets: Kind of targets; `any` for a user's function.
        two_classes: Whether it is of two classes alone.
        per_class: Whether two classes have two outputs as well; then a model of
            sequences may know more classes than the data have.
        zeros_and_ones: Whether targets must be zeros and ones.
        in_nats: Whether it is a negative log-likelihood.
        curvature: Bound of its second derivative in the logits, where it has one.
        row: `"module:function"` in NumPy, of logits and classes to the losses of rows
            and their derivatives; with it the least value of a linear model is found.
    """

    function: str
    _: KW_ONLY
    targets: Literal["classes", "numbers", "any"] = "classes"
    two_classes: bool = False
    per_class: bool = False
    zeros_and_ones: bool = False
    in_nats: bool = False
    curvature: float | None = None
    row: str = ""


SOFTMAX = LossPart(
    "softmax",
    f"{NUMERICS}.losses:softmax",
    meaning="negative log-likelihood of classes, an output for each",
    per_class=True,
    in_nats=True,
    curvature=0.5,
    row=f"{NUMERICS}.convex:softmax",
)
SIGMOID = LossPart(
    "sigmoid",
    f"{NUMERICS}.losses:sigmoid",
    meaning="negative log-likelihood of two classes, of the log odds",
    two_classes=True,
    in_nats=True,
    curvature=0.25,
    row=f"{NUMERICS}.convex:sigmoid",
)
HINGE = LossPart(
    "hinge", f"{NUMERICS}.losses:hinge", meaning="margins, one against the rest"
)
TAYLOR = LossPart(
    "taylor",
    f"{NUMERICS}.losses:taylor",
    meaning="sigmoid to second order, with an affine derivative (FedBCD, F-10)",
    two_classes=True,
    curvature=0.25,
)
SQUARED = LossPart(
    "squared",
    f"{NUMERICS}.losses:squared",
    meaning="squared distance of outputs and targets, mean of a row",
    targets="numbers",
)
BINARY = LossPart(
    "binary",
    f"{NUMERICS}.losses:binary",
    meaning="negative log-likelihood of zeros and ones, mean of a row",
    targets="numbers",
    zeros_and_ones=True,
    in_nats=True,
)


def facts(name: str) -> LossPart:
    """Returns the facts of a loss; nothing for a user's function."""
    records = catalogue.records("losses", LossPart)
    own = LossPart(name, name, targets="any")
    return next((record for record in records if record.name == name), own)


def in_nats(name: str) -> bool:
    """Returns whether a problem's loss, as it is written, is a log-likelihood."""
    return name == "auto" or facts(name).in_nats


QUANTITIES = (
    *("virtual_s", "commits", "contributions", "epochs", "rounds", "messages"),
    *("bytes", "upload_bytes", "download_bytes", "epsilon", "joules"),
)
"""Further quantities of a run at its end that claims compare: its virtual time, its
counts, the largest epsilon that a client has spent, and joules of all clients."""
TAKEN = ("run", "time", "client", *QUANTITIES)
"""Names of other columns, and of quantities, that no metric may have."""
OF_LOSS = "unit of the loss"
"""Unit of a metric that is a loss; the problem has the loss."""
NATS = "nats"
SAID = ("fraction", "classes")
"""Units that labels leave out, because the names of such metrics contain them."""


class Models(Enum):
    """Models that a metric is computed of."""

    READ_OUT = "the model that the algorithm reads out"
    EACH_WORKER = "each worker's own model; the mean over workers is the value"
    ALL_WORKERS = "the workers' own models together"
    PERTURBED = "the model with noise in the parties' networks (VAFL)"


class Takes(Enum):
    """Arguments of the function that computes a metric."""

    OUTPUTS = "outputs and targets of the test rows, rows first"
    MODEL = "the problem, the model and the outputs of the test rows"


class Each(Enum):
    """The items, such as clients, over which a metric's value is the mean."""

    CLIENT = "client"
    LABEL = "label"


class ProblemFacts(NamedTuple):
    """Facts of a problem that metrics may need.

    Attributes:
        dataset: Name of the data set.
        num_classes: Number of classes of the labels; 0 if targets are no classes.
        minimum: Whether the least value of the objective can be computed.
        likelihood: Whether the loss is a negative log-likelihood.
        divided: Whether clients have different rows.
    """

    dataset: str
    num_classes: int
    minimum: bool
    likelihood: bool
    divided: bool


@dataclass(frozen=True)
class Need:
    """A fact that a metric is computed from and that not every problem has.

    Attributes:
        met: Function of `ProblemFacts` that returns whether a problem has it.
        rule: What `evaluate.metrics` must obey, with `{name}` of the metric and the
            entries of `ProblemFacts`, and the remedy.
    """

    met: Callable[[ProblemFacts], bool]
    rule: str


def _has_two_classes(facts: ProblemFacts) -> bool:
    return facts.num_classes == 2


CLASSES = Need(
    attrgetter("num_classes"),
    "must not have {name} for {dataset}, whose targets are no classes; take "
    "test_loss, or a custom metric",
)
TWO_CLASSES = Need(
    _has_two_classes,
    "must not have {name} for the {num_classes} classes of {dataset}; remove it, or "
    "add problem.data.classes",
)
MINIMUM = Need(
    attrgetter("minimum"),
    "must have {name} only where the minimum is known: linear models with the loss "
    "softmax or sigmoid, the model diagonal with squared; remove it",
)
ROWS = Need(
    attrgetter("divided"),
    "must have {name} only for data that are divided by rows, of which clients have "
    "their own; remove it",
)
LIKELIHOOD = Need(
    attrgetter("likelihood"),
    "must have {name} only with the loss softmax or sigmoid, whose exponential it is; "
    "remove it",
)
_WITHOUT_WORKERS = (
    "for the algorithm {kind!r}, whose workers have no models of their own; remove it"
)
BESIDES: dict[Models, str] = {
    Models.EACH_WORKER: _WITHOUT_WORKERS,
    Models.ALL_WORKERS: _WITHOUT_WORKERS,
    Models.PERTURBED: (
        "without noise in the parties' networks; remove it, or set "
        "algorithm.perturbation"
    ),
}
"""Models that not every algorithm has, and why a metric of them is refused then."""


class HasModels:
    """An algorithm with other models than the evaluated one, for metrics."""

    @property
    def models(self) -> frozenset[Models]:
        """Which of `BESIDES` it has."""
        raise NotImplementedError


NON_NEGATIVE = (0.0, math.inf)
"""Bounds of squares and distances."""


@dataclass(frozen=True)
class Metric(NamedPart):
    """The full description of a metric.

    Attributes:
        name: Column of the table `evaluations`, and name in a scenario.
        compute: Function as `"module:function"`; it is imported when a run uses it and
            is traced by JAX. It returns a number, from the arguments of `takes`.
        takes: `OUTPUTS`: the function gets outputs and targets of the test rows, both
            with an axis of rows first; a single output of a row has no axis. `MODEL`:
            it gets the problem, the model and the outputs, of our own models of shape
            `[C, N_test]`; of `Models.ALL_WORKERS` the problem, the models, with the
            axis of workers first, and the average model; of `Models.PERTURBED` the
            problem, the model, the noise and its key.
        label: Label in figures, to which the unit is added; by default from the name.
        unit: Unit of the column; empty if there is none, `OF_LOSS` if it is the loss's.
        higher_is_better: Whether learning raises the metric, or lowers it.
        bounds: Least and largest value that there can be; figures cut intervals there,
            and a run that diverged counts as the worse of the two.
        logarithmic: Whether the metric goes to zero, so that figures have a
            logarithmic axis.
        models: Models that it is computed of.
        needs: Facts that a problem must have.
        of_run: Function as `"module:function"` that makes the value on the host, where
            it depends on a run's clients: of the mix of labels of each client `[K, C]`
            and of the result of `compute`, a number for each label `[C]`. Empty where
            `compute` returns the value.
        each: The items of the mean; each has a row of a separate table.
        meaning: Description of the column.
    """

    compute: str
    label: str = ""
    unit: str = ""
    higher_is_better: bool = False
    bounds: tuple[float, float] | None = None
    logarithmic: bool = False
    models: Models = Models.READ_OUT
    takes: Takes = Takes.MODEL
    needs: tuple[Need, ...] = ()
    of_run: str = ""
    each: Each | None = None

    def __post_init__(self) -> None:
        if self.name in TAKEN:
            raise UserError(
                f"a metric must have a new name, got {self.name!r}, which tables and "
                "claims already use; rename it"
            )

    @property
    def worst(self) -> float | None:
        """Worst value that there can be; None if the metric may grow without end."""
        if self.bounds is None:
            return None
        worst = self.bounds[0] if self.higher_is_better else self.bounds[1]
        return worst if math.isfinite(worst) else None

    @property
    def is_own(self) -> bool:
        """Whether its function is the user's own."""
        return not self.compute.startswith("stalesim.")

    @property
    def title(self) -> str:
        """Label with the unit in parentheses, where it is known and worth saying."""
        found = self.label or self.name.replace("_", " ").capitalize()
        if self.unit in ("", OF_LOSS, *SAID) or found.endswith(f"({self.unit})"):
            return found
        return f"{found} ({self.unit})"

    @property
    def direction(self) -> str:
        """Words on which way is better."""
        return f"{'higher' if self.higher_is_better else 'lower'} is better"

    def of_problems(self, problems: Iterable[Mapping[str, object]]) -> "Metric":
        """Returns the metric of some problems, in the unit that their losses have."""
        if self.unit != OF_LOSS:
            return self
        units = {loss_unit(problem) for problem in problems}
        return replace(self, unit=units.pop() if len(units) == 1 else "")

    def range_missed(self, value: float) -> str:
        """Returns the rule that a value breaks which the metric cannot have, or ""."""
        low, high = self.bounds or (-math.inf, math.inf)
        if low <= value <= high:
            return ""
        ends = ((">=", low), ("<=", high))
        return " and ".join(f"{s} {end:g}" for s, end in ends if math.isfinite(end))

    def function(self) -> Callable[..., Any]:
        """Imports and returns the function that computes the metric.

        Raises:
            UserError: The record of a plug-in names no function.
        """
        return function_at(self.compute, f"compute of the metric {self.name}")

    def mean(self, value: float | np.ndarray) -> np.floating:
        """Returns the one number of an evaluation: the mean over clients or workers.

        Of labels those do not count that no test row has.
        """
        return np.nanmean(value) if self.each is Each.LABEL else np.mean(value)

    def finish(self) -> Callable[..., Any]:
        """Imports and returns the function that makes the value on the host."""
        return function_at(self.of_run, f"of_run of the metric {self.name}")

    def refuse(self, facts: ProblemFacts) -> None:
        """Refuses a problem that does not meet the metric's requirements."""
        for need in self.needs:
            if not need.met(facts):
                rule = need.rule.format(name=self.name, **facts._asdict())
                raise ScenarioError(f"evaluate.metrics {rule}")

    def refuse_algorithm(self, algorithm: Part) -> None:
        """Refuses an algorithm that lacks the models that the metric is computed of."""
        own = algorithm.models if isinstance(algorithm, HasModels) else ()
        if self.models in BESIDES and self.models not in own:
            why = BESIDES[self.models].format(kind=algorithm.kind)
            raise LocatedError(f"evaluate.metrics must not have {self.name} {why}")


def loss_unit(problem: Mapping[str, object]) -> str:
    """Returns the unit of a problem's loss; empty if there is none."""
    if in_nats(str(problem.get("loss", "auto"))):
        return NATS
    return str(problem.get("loss_unit") or "")


def own() -> list[Metric]:
    """Returns this package's metrics."""
    return [each for each in catalogue.own("metrics") if isinstance(each, Metric)]


def names() -> tuple[str, ...]:
    """Returns the names of all metrics: this package's, then those of plug-ins."""
    return tuple(metric.name for metric in catalogue.records("metrics", Metric))


def find(name: str) -> Metric | None:
    """Returns a metric; None if no metric of this package or a plug-in has the name."""
    metrics = catalogue.records("metrics", Metric)
    return next((metric for metric in metrics if metric.name == name), None)


def metric(name: str) -> Metric:
    """Returns a metric, for a caller that needs its record.

    Raises:
        UserError: No metric of this package or a registered plug-in has the name.
    """
    found = find(name)
    if found is None:
        raise UserError(
            f"metric must be a known one, got {name!r}; {suggestion(name, names())}; "
            f"that of a plug-in is known once its module is registered (--plugin)"
        )
    return found
