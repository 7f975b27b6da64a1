"""Problems on the device, and what step sizes by theory ask of them."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from simulator.config import functions
from simulator.config.errors import ScenarioError
from simulator.keys import key_of
from simulator.metrics import Models, metric
from simulator.problems import convex, horizontal, losses, outputs, transfer, vertical
from simulator.problems.caching import cached_by_content, dataset
from simulator.problems.constants import Constants
from simulator.problems.data.base import Dataset
from simulator.problems.estimates import Estimates, estimate
from simulator.problems.models.party import party_network
from simulator.problems.outputs import OutputForm
from simulator.problems.shares import common_samples

FEW = 7
"""Training rows that a loss of a user's own is looked at with."""
ON_TEST_ROWS = (Models.READ_OUT, Models.EACH_WORKER)
"""Models of which metrics are computed on the test rows."""
SMOOTH = ("softmax", "sigmoid", "taylor")
"""Losses whose smoothness is bounded for a linear model."""


@cached_by_content
def build(config: Any, precision: str, *, with_minimum: bool, bias: bool = True) -> Any:
    """Builds a problem and puts it on the device, once for all runs that share it.

    Args:
        config: The problem's configuration, a `simulator.scenario.scenario.Problem`.
        precision: `float32` or `float64`.
        with_minimum: Whether the least value of the objective is computed.
        bias: Whether that objective's model has a bias.
    """
    data = dataset(config.data)
    horizontal_ = config.partition.family == "horizontal"
    wanted = outputs.form(config, data)
    as_given = config.gives_rows
    of_problem = losses.of_form(wanted, as_given=as_given)
    least = float("nan")
    if with_minimum:
        x, y = data.x_train, data.y_train
        least = convex.minimum(
            x, y, wanted.loss, wanted.num_outputs, config.l2, bias=bias
        )
    options = {
        "loss": of_problem,
        "reduction": config.reduction,
        "l2": config.l2,
        "minimum": least,
        "dtype": precision,
    }
    if not horizontal_:
        found = _vertical(config, data, wanted, options)
        if config.transfer is None:
            return found
        common = common_samples(config, len(data.x_train))
        alpha = jnp.asarray(config.transfer.alpha, precision)
        return transfer.TransferProblem(found, jnp.asarray(common), alpha)
    classifier = config.model.of_rows(data, wanted)
    clients = config.partition.num_clients
    return horizontal.build(data, classifier, clients, **options)


def _vertical(
    config: Any, data: Dataset, form: OutputForm, options: dict[str, Any]
) -> vertical.VerticalProblem:
    """Builds a vertically divided problem, of logits or with a server's network."""
    model, chosen, num_outputs = config.model, config.server, form.num_outputs
    columns = config.partition.make(data)
    sizes = [part.size for part in columns]
    if chosen is None and "vertical" in model.families:
        family = "transfer" if config.transfer else "vertical"
        embedding = model.make(num_outputs, max(sizes), family)
        return vertical.build(data, columns, embedding, **options)
    views = chosen.views if chosen else 1
    embedding = party_network(
        model,
        sizes,
        width=chosen.width if chosen else num_outputs,
        views=views,
        last=chosen is not None,
    )
    server = chosen and chosen.network(len(columns), form)
    frames = model.frames if model.sequential else 1
    return vertical.build(
        data, columns, embedding, server=server, pieces=views * frames, **options
    )


def check_own(config: Any, problem: Any, metrics: Sequence[str]) -> None:
    """Refuses models, losses and metrics of a user's own that do not fit each other.

    Models and losses of this package are not looked at.

    Args:
        config: The problem's configuration.
        problem: The problem on the device.
        metrics: Names of the metrics that are evaluated.

    Raises:
        ScenarioError: A function of the user's fails, or gives anything else than it
            should, or the loss is not finite at the start.
    """
    named = [each for each in map(metric, metrics) if each.models in ON_TEST_ROWS]
    own = [each for each in named if not each.compute.startswith("simulator.")]
    given = _given(config)
    if not given and not own:
        return
    weights = problem.start(key_of(0))
    model: Any = weights
    if config.partition.family == "vertical":
        model = (weights, problem.start_server(key_of(0)))
    where, what = given[0] if given else ("problem", config.model.kind)
    value = functions.calling(what, where, lambda: _loss_of_few(problem, model))
    if not jnp.isfinite(value):
        raise ScenarioError(
            f"{where} must give a finite loss at the start, got {float(value)} of the "
            f"first rows from {what!r}; change the start, scale the data, or mend it"
        )
    for each in named:
        evaluated = partial(problem.evaluate, metrics=(each.name,))
        place = f"evaluate.metrics: {each.name}"
        found = functions.calling(
            each.compute, place, lambda run=evaluated: jax.eval_shape(run, model)
        )[each.name]
        if found.shape or not jnp.issubdtype(found.dtype, jnp.floating):
            raise ScenarioError(
                f"{place} must be one floating number, got an array of shape "
                f"{list(found.shape)} and type {found.dtype} from {each.compute!r}; "
                f"return its mean"
            )


def _given(config: Any) -> list[tuple[str, str]]:
    """Returns entries and names of a problem's functions that are the user's."""
    found = {
        "problem.loss": config.loss if ":" in config.loss else None,
        "problem.model.build": getattr(config.model, "build", None),
        "problem.server.build": getattr(config.server, "build", None),
    }
    return [(entry, name) for entry, name in found.items() if name]


def _loss_of_few(problem: Any, model: Any) -> Any:
    """Returns the loss of the first rows, in a model.

    Raises:
        ScenarioError: A loss of the user's own does not give a number of each row.
    """
    few = problem.first(FEW)
    outputs = few.outputs(model)
    if isinstance(few.loss, losses.OwnLoss):
        each = few.loss.function(losses.rows_first(few.loss, outputs), few.y)
        got = getattr(each, "shape", type(each).__name__)
        if got != few.y.shape[:1] or each.dtype != few.x.dtype:
            shape = list(got) if isinstance(got, tuple) else got
            raise ScenarioError(
                f"problem.loss must give a number of each row, of the shape "
                f"[{len(few.y)}] for so many rows and the type of the outputs, got "
                f"{shape} from {few.loss.name!r}; do not take the mean over rows"
            )
    return few.objective(model)


def constants(config: Any, *, bias: bool, commits_per_epoch: float) -> Constants:
    """Returns what is known of a convex objective; little of others.

    Args:
        config: The problem's configuration.
        bias: Whether the model has a bias.
        commits_per_epoch: Commits of a pass over the data.
    """
    partition = config.partition
    data = dataset(config.data)
    of_problem = outputs.loss(config, data)
    known = Constants(
        num_clients=partition.num_clients, commits_per_epoch=commits_per_epoch
    )
    if not config.is_linear or of_problem not in SMOOTH:
        return known
    return known._replace(
        smoothness=lambda: _smoothness(config, bias=bias),
        strong_convexity=config.l2 or None,
        of_parties=lambda: _smoothness_of_parties(config),
    )


def with_estimates(
    known: Constants, config: Any, problem: Any, precision: str, seed: int
) -> Constants:
    """Returns constants together with those that are measured on the device.

    Args:
        known: Constants from the data alone.
        config: The problem's configuration.
        problem: The problem on the device.
        precision: `float32` or `float64`.
        seed: Seed of the run, whose initial model the measurements are at.
    """
    if config.partition.family != "horizontal":
        return known
    return known._replace(
        num_first_layer=problem.model.num_noised,
        estimates=lambda: _estimates(config, precision, seed),
    )


@cached_by_content
def _smoothness(config: Any, *, bias: bool) -> float:
    """Returns L of a convex objective; an eigenvalue of its features."""
    data = dataset(config.data)
    of_problem = outputs.loss(config, data)
    return convex.smoothness(data.x_train, of_problem, config.l2, bias=bias)


@cached_by_content
def _smoothness_of_parties(config: Any) -> tuple[float, ...]:
    """Returns L_k of each party's block; nothing where there are no parties."""
    partition = config.partition
    if partition.family != "vertical":
        return ()
    data = dataset(config.data)
    columns, of_problem = partition.make(data), outputs.loss(config, data)
    return convex.smoothness_of_parties(data.x_train, columns, of_problem, config.l2)


@cached_by_content
def _estimates(config: Any, precision: str, seed: int) -> Estimates:
    """Measures a horizontal problem's constants where a run of this seed starts."""
    problem = build(config, precision, with_minimum=False)
    return estimate(problem, key_of(seed))
