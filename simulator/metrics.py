"""Metrics: what a model is evaluated by, one record each.

A record says everything that others ask of a metric: the function that computes it on
the device, the table column, the label and limits in figures, which way is better, and
what it needs. `config/catalogue.py` lists the records, and plug-ins add theirs.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from .config import catalogue
from .config.errors import ScenarioError, UserError
from .config.named import NamedPart, function_at
from .config.text import suggestion
from .data.losses import in_nats

QUANTITIES = (
    *("virtual_s", "commits", "contributions", "epochs", "rounds", "messages"),
    *("bytes", "upload_bytes", "download_bytes", "epsilon"),
)
"""Further quantities of a run at its end that claims compare: its virtual time, its
counts, and the largest epsilon that a client has spent."""
TAKEN = ("run", "time", "client", *QUANTITIES)
"""Names of other columns, and of quantities, that no metric may have."""
OF_LOSS = "unit of the loss"
"""Unit of a metric that is a loss; the problem says which that is."""
NATS = "nats"
SAID = ("fraction", "classes")
"""Units that labels leave out, for the names of such metrics say them."""


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
    """What a metric may have a number of, besides the mean that is its value."""

    CLIENT = "client"
    LABEL = "label"


class Need(Enum):
    """Facts that a metric is computed from and that not every problem has."""

    CLASSES = "labels of classes"
    TWO_CLASSES = "labels of two classes"
    MINIMUM = "the least value of the objective"
    LIKELIHOOD = "a loss that is a negative log-likelihood: softmax or sigmoid"
    ROWS = "training rows that are divided among clients"


@dataclass(frozen=True)
class Metric(NamedPart):
    """Everything that is to be said of a metric.

    Attributes:
        name: Column of the table `evaluations`, and name in a scenario.
        compute: Function as `"module:function"`; it is imported when a run uses it and
            is traced by JAX. It returns a number, of what `takes` says.
        takes: `OUTPUTS`: the function gets outputs and targets of the test rows, both
            with an axis of rows first; a single output of a row has no axis. `MODEL`:
            it gets the problem, the model and the outputs, of our own models of shape
            `[C, N_test]`; of `Models.ALL_WORKERS` the problem and the models, with the
            axis of workers first; of `Models.PERTURBED` the problem, the model, the
            noise and its key.
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
            and of what `compute` has found, a number for each label `[C]`. Empty where
            `compute` returns the value.
        each: What the value is a mean over, with rows of a table of its own.
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
                f"a metric must have a name of its own, got {self.name!r}, which the "
                f"tables and claims have already; rename it"
            )

    @property
    def worst(self) -> float | None:
        """Worst value that there can be; None if the metric may grow without end."""
        if self.bounds is None:
            return None
        worst = self.bounds[0] if self.higher_is_better else self.bounds[1]
        return worst if math.isfinite(worst) else None

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

    def of_problems(self, problems: Iterable[Mapping[str, Any]]) -> "Metric":
        """Returns the metric of some problems, in the unit that their losses have.

        Args:
            problems: The problems of a study's runs, as they are written.
        """
        if self.unit != OF_LOSS:
            return self
        units = {loss_unit(problem) for problem in problems}
        return replace(self, unit=units.pop() if len(units) == 1 else "")

    @property
    def of_workers(self) -> bool:
        """Whether it is computed of models that workers have of their own."""
        return self.models in (Models.EACH_WORKER, Models.ALL_WORKERS)

    def range_missed(self, value: float) -> str:
        """Returns the rule that a value breaks which the metric cannot have, or ""."""
        low, high = self.bounds or (-math.inf, math.inf)
        if low <= value <= high:
            return ""
        ends = [f">= {low:g}"] * math.isfinite(low) + [f"<= {high:g}"] * (
            high < math.inf
        )
        return " and ".join(ends)

    def function(self) -> Callable[..., Any]:
        """Imports and returns the function that computes the metric.

        Raises:
            UserError: The record of a plug-in names no function.
        """
        own = self.compute.startswith("stalesim.")
        return function_at(self.compute, f"compute of the metric {self.name}", own=own)

    def mean(self, value: Any) -> Any:
        """Returns the one number of an evaluation: the mean over clients or workers.

        Of labels those do not count that no test row has.
        """
        return np.nanmean(value) if self.each is Each.LABEL else np.mean(value)

    def finish(self) -> Callable[..., Any]:
        """Imports and returns the function that makes the value on the host."""
        own = self.of_run.startswith("stalesim.")
        return function_at(self.of_run, f"of_run of the metric {self.name}", own=own)

    def refuse(
        self,
        num_classes: int,
        dataset: str,
        *,
        minimum: bool,
        likelihood: bool,
        divided: bool = True,
    ) -> None:
        """Refuses a problem that lacks what the metric needs.

        Args:
            num_classes: Number of classes of the labels.
            dataset: Name of the data set.
            minimum: Whether the least value of the objective can be computed.
            likelihood: Whether the loss is a negative log-likelihood.
            divided: Whether clients have rows of their own.

        Raises:
            ScenarioError: The problem lacks something; the message says what to do.
        """
        if Need.CLASSES in self.needs and not num_classes:
            raise ScenarioError(
                f"evaluate.metrics must not have {self.name} for {dataset}, whose "
                f"targets are no classes; take test_loss, or a metric of your own"
            )
        if Need.TWO_CLASSES in self.needs and num_classes != 2:
            raise ScenarioError(
                f"evaluate.metrics must not have {self.name} for the {num_classes} "
                f"classes of {dataset}; remove it, or add problem.data.classes"
            )
        if Need.MINIMUM in self.needs and not minimum:
            raise ScenarioError(
                f"evaluate.metrics must have {self.name} only where the minimum is "
                f"known: linear models with the loss softmax or sigmoid, the model "
                f"diagonal with squared; remove it"
            )
        if Need.ROWS in self.needs and not divided:
            raise ScenarioError(
                f"evaluate.metrics must have {self.name} only for data that are "
                f"divided by rows, of which clients have their own; remove it"
            )
        if Need.LIKELIHOOD in self.needs and not likelihood:
            raise ScenarioError(
                f"evaluate.metrics must have {self.name} only with the loss softmax or "
                f"sigmoid, whose exponential it is; remove it"
            )


TEST_ACCURACY = Metric(
    "test_accuracy",
    "stalesim.simulator.learning.metrics:accuracy",
    meaning="of the test rows",
    label="Test accuracy",
    unit="fraction",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    takes=Takes.OUTPUTS,
    needs=(Need.CLASSES,),
)
TEST_LOSS = Metric(
    "test_loss",
    "stalesim.simulator.learning.metrics:loss",
    meaning="mean over the test rows",
    label="Test loss",
    unit=OF_LOSS,
)
TEST_PERPLEXITY = Metric(
    "test_perplexity",
    "stalesim.simulator.learning.metrics:perplexity",
    meaning="exponential of the mean loss of the test rows",
    label="Test perplexity",
    unit="classes",
    needs=(Need.LIKELIHOOD,),
)
TEST_AUC = Metric(
    "test_auc",
    "stalesim.simulator.learning.metrics:area_under_roc_curve",
    meaning="area under the ROC curve, test rows",
    label="Test AUC",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    takes=Takes.OUTPUTS,
    needs=(Need.CLASSES, Need.TWO_CLASSES),
)
EXPECTED_REWARD = Metric(
    "expected_reward",
    "stalesim.simulator.learning.metrics:expected_reward",
    meaning="of a policy that is rewarded for the right class, or answer: its exact "
    "mean over the test rows",
    label="Expected reward",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    needs=(Need.CLASSES, Need.LIKELIHOOD),
)
OBJECTIVE = Metric(
    "objective",
    "stalesim.simulator.learning.metrics:objective",
    meaning="F on all training rows, regularised",
    label="Objective",
    unit=OF_LOSS,
)
GRADIENT_NORM_SQUARED = Metric(
    "gradient_norm_squared",
    "stalesim.simulator.learning.metrics:gradient_norm_squared",
    meaning="squared norm of F's gradient",
    label="Squared norm of the gradient",
    logarithmic=True,
)
OPTIMALITY_GAP = Metric(
    "optimality_gap",
    "stalesim.simulator.learning.metrics:optimality_gap",
    meaning="F minus its minimum",
    label="Optimality gap",
    unit=OF_LOSS,
    logarithmic=True,
    needs=(Need.MINIMUM,),
)
SMOOTHED_GRADIENT_NORM_SQUARED = Metric(
    "smoothed_gradient_norm_squared",
    "stalesim.simulator.algorithms.vafl.smoothed:gradient_norm_squared",
    meaning="squared norm of the gradient of F averaged over the noise; unbiased",
    label="Squared norm of the smoothed gradient",
    logarithmic=True,
    models=Models.PERTURBED,
)
CONSENSUS_DISTANCE = Metric(
    "consensus_distance",
    "stalesim.simulator.algorithms.decentralised.kernel:consensus_distance",
    meaning="mean squared distance of workers' models from their mean",
    models=Models.ALL_WORKERS,
)
WORKER_ACCURACY = Metric(
    "worker_accuracy",
    "stalesim.simulator.learning.metrics:accuracy",
    meaning="mean of the workers' own",
    unit="fraction",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    models=Models.EACH_WORKER,
    takes=Takes.OUTPUTS,
    needs=(Need.CLASSES,),
)
WORKER_LOSS = Metric(
    "worker_loss",
    "stalesim.simulator.learning.metrics:loss",
    meaning="mean of the workers' own",
    unit=OF_LOSS,
    models=Models.EACH_WORKER,
)


def loss_unit(problem: Mapping[str, Any]) -> str:
    """Returns the unit of a problem's loss; empty if there is none.

    Args:
        problem: The problem as it is written.
    """
    if in_nats(problem.get("loss", "auto")):
        return NATS
    return str(problem.get("loss_unit") or "")


def own() -> tuple[Metric, ...]:
    """Returns this package's metrics."""
    return catalogue.own("metrics")


def names() -> tuple[str, ...]:
    """Returns the names of all metrics: this package's, then those of plug-ins."""
    return tuple(metric.name for metric in catalogue.parts("metrics"))


def find(name: str) -> Metric | None:
    """Returns a metric; None if no metric of this package or a plug-in has the name."""
    metrics = catalogue.parts("metrics")
    return next((metric for metric in metrics if metric.name == name), None)


def higher_is_better(name: str) -> bool:
    """Says whether learning raises a metric; raises UserError as `metric` does."""
    return metric(name).higher_is_better


def metric(name: str) -> Metric:
    """Returns a metric, for what cannot be said without knowing it.

    Raises:
        UserError: No metric of this package or a registered plug-in has the name.
    """
    found = find(name)
    if found is None:
        raise UserError(
            f"metric must be a known one, got {name!r}; {suggestion(name, names())}; "
            f"that of a plug-in is known once its module is registered (--import)"
        )
    return found
