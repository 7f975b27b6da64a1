"""Custom losses, metrics and models: their faults, before a run."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ..parts import functions
from ..parts.functions import UserFunction
from ..parts.metrics import Metric, Models, metric
from . import losses
from .data.base import Dataset
from .keys import key_of
from .models import purity
from .vertical import VerticalProblem

if TYPE_CHECKING:
    from ..scenario.scenario import Problem
    from .horizontal import HorizontalProblem
    from .numerics import DeviceProblem

FEW = 7
"""Training rows that a function is looked at with; their axis is known by it."""
FEW_TESTED = 13
"""Test rows that it is looked at with."""
FEWER = 3
"""Rows of which losses are compared with those among all that are looked at."""
NEAR = 1e-4
"""Share of the largest number that rounding may change."""
ON_TEST_ROWS = (Models.READ_OUT, Models.EACH_WORKER)
"""Models of which metrics are computed on the test rows."""


def first_rows(data: Dataset) -> Dataset:
    """Returns a data set of the first rows, which is known by as many classes."""
    return data._replace(
        x_train=data.x_train[:FEW],
        y_train=data.y_train[:FEW],
        x_test=data.x_test[:FEW_TESTED],
        y_test=data.y_test[:FEW_TESTED],
    )


def check(config: "Problem", problem: "DeviceProblem", metrics: Sequence[str]) -> None:
    """Refuses models, losses and metrics of a user's own that do not fit each other.

    Models and losses of this package are not looked at.

    Raises:
        ScenarioError: A function of the user's fails, or gives anything else than it
            should, depends on more than its arguments, or loss or gradient are not
            finite at the start.
    """
    model = _start(problem)
    found = config.own_functions
    if found:
        _check_loss(found[0], problem.first(FEW), model)
    if config.model.measured_by is not None:
        return
    named = [metric(name) for name in metrics]
    for each in [each for each in named if each.models in ON_TEST_ROWS]:
        _check_metric(each, problem, model)


def coupling(config: "Problem", problem: "DeviceProblem") -> UserFunction | None:
    """Returns why rows of a batch depend on each other, as in a contrastive loss.

    Outputs and losses of the first rows are compared with those that the same rows have
    among more, at a model that is not special as the start may be.

    Returns:
        The user's model or loss; None where a row's loss follows from itself, and for
        models and losses of this package, of which it always does.
    """
    found = config.own_functions
    if not found:
        return None
    key = jax.random.key(0)
    model = jax.tree.map(
        lambda leaf: leaf + jax.random.normal(key, leaf.shape, leaf.dtype) / 2,
        _start(problem),
    )

    def of_first(count: int) -> tuple[list[PyTree], PyTree]:
        few = problem.first(count)
        outputs = functions.calling(*found[0], lambda: few.outputs(model))
        y = few.y.reshape(-1) if losses.by_position(few.loss) else few.y
        each = functions.calling(
            *found[0], lambda: losses.per_sample(few.loss, outputs, y)
        )
        return jax.tree.leaves(losses.rows_first(few.loss, outputs)), each

    (outputs, each), (among, each_among) = of_first(FEWER), of_first(FEW)
    of_model = [named for named in found if named.entry != "problem.loss"]
    if of_model and not all(map(_alike, outputs, among)):
        return of_model[0]
    return None if _alike(each, each_among) else found[0]


def _alike(few: Array, more: Array) -> bool:
    """Says whether numbers of the first rows are those that these have among more."""
    same = more[: len(few)]
    most = float(jnp.nan_to_num(jnp.abs(few), posinf=0.0).max(initial=0.0))
    return bool(jnp.allclose(few, same, NEAR, NEAR * most, equal_nan=True))


def _start(problem: "DeviceProblem") -> PyTree:
    """Returns a problem's model at a start, with the server's where columns are."""
    model = problem.start(key_of(0))
    if isinstance(problem, VerticalProblem):
        return model, problem.start_server(key_of(0))
    return model


def _check_loss(
    named: UserFunction, few: "HorizontalProblem | VerticalProblem", model: PyTree
) -> None:
    own = few.loss
    if isinstance(own, losses.OwnLoss):
        outputs = functions.calling(*named, lambda: few.outputs(model))
        rows = losses.rows_first(own, outputs)
        _check_each(named, own, rows, few)
        purity.check(named, own.function, rows, few.y)
    value, slopes = functions.calling(
        *named, lambda: jax.value_and_grad(few.objective)(model)
    )
    if not jnp.isfinite(value):
        raise named.refused(
            f"must give a finite loss at the start, got {float(value)} of the "
            f"first rows from {named}; change the start, scale the data, or mend it"
        )
    if not all(jnp.isfinite(slope).all() for slope in jax.tree.leaves(slopes)):
        raise named.refused(
            f"must have a finite gradient at the start, got NaN or infinity of the "
            f"first rows from {named}; a root or norm of 0 has none, add a small number"
        )


def _check_each(
    named: UserFunction,
    own: losses.OwnLoss,
    rows: PyTree,
    few: "HorizontalProblem | VerticalProblem",
) -> None:
    each = functions.calling(*named, lambda: own.function(rows, few.y))
    got = getattr(each, "shape", type(each).__name__)
    if got != few.y.shape[:1]:
        shape = list(got) if isinstance(got, tuple) else got
        raise named.refused(
            f"must give a number of each row, of the shape [{len(few.y)}] for these "
            f"rows and the type of the outputs, got {shape} from {named}; do not take "
            f"the mean over rows"
        )
    if each.dtype != few.x.dtype:
        raise named.refused(
            f"must give numbers of the type of the run, {few.x.dtype}, got "
            f"{each.dtype} from {named}; convert them back at its end"
        )


def _check_metric(record: Metric, problem: "DeviceProblem", model: PyTree) -> None:
    named = UserFunction(record.compute, f"evaluate.metrics: {record.name}")
    evaluated = partial(problem.evaluate, metrics=(record.name,))
    found = functions.calling(*named, lambda: jax.eval_shape(evaluated, model))
    if record.of_run:  # the host makes the number of it
        return
    value = found[record.name]
    shape = getattr(value, "shape", ())
    if shape or not jnp.issubdtype(value.dtype, jnp.floating):
        raise named.refused(
            f"must be one floating number, got an array of shape {list(shape)} and "
            f"type {value.dtype} from {named}; return its mean"
        )
    if record.is_own:
        purity.check(named, evaluated, model)
