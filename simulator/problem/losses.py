"""Losses of samples, their sum or mean over a batch, and metrics of a model.

Outputs have one of two layouts. Models of this package have outputs first and samples
last, `[C, S]`, of rows with positions all positions of the first row, then of the
second; that is faster. A user's function gets them as users write them, rows first.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num, PyTree

from ..parts import functions
from ..parts.base import function_at
from ..parts.errors import ScenarioError
from ..parts.metrics import Takes, facts, metric
from .data.outputs import OutputForm

if TYPE_CHECKING:
    from .numerics import DeviceProblem


class OwnLoss(NamedTuple):
    """A loss of the user's own.

    Attributes:
        name: Name of the function, `"module:function"`.
        function: Function of outputs and targets, rows first, to a loss of each row.
        positions: Shape of the positions of a row, where outputs are `[C, S]` of all
            positions; None where a custom model's outputs are used unchanged.
    """

    name: str
    function: Callable[[PyTree, PyTree], PyTree]
    positions: tuple[int, ...] | None = None


Loss = str | OwnLoss
"""The name of a record of the catalogue, or a custom loss."""


def of_form(form: OutputForm, *, as_given: bool) -> Loss:
    """Returns the loss of a problem.

    Args:
        form: The outputs that the loss takes, and its name.
        as_given: Whether a custom model's outputs are used unchanged.

    Raises:
        ScenarioError: There is no such function.
    """
    if not form.is_own:
        return form.loss
    function = functions.resolve(form.loss, "problem.loss")
    if not callable(function):
        raise ScenarioError(
            f"problem.loss must name a function of outputs and targets, got "
            f"{form.loss!r}, which is {type(function).__name__}; change it"
        )
    return OwnLoss(form.loss, function, None if as_given else form.positions)


def per_sample(
    loss: Loss, outputs: PyTree, targets: Num[Array, "..."]
) -> Float[Array, "*w S"]:
    """Returns the loss of each sample.

    Args:
        loss: The loss.
        outputs: Outputs `[*w, C, S]`; for a custom loss anything, samples first.
        targets: Classes `[*w, S]`; numbers, and those of losses of one's own,
            `[*w, S, ...]`.
    """
    if isinstance(loss, OwnLoss):
        return _own(loss, outputs, targets)
    function = _function(loss)
    if by_position(loss):
        return function(outputs, targets)
    *w, C, S = outputs.shape
    wanted = jnp.swapaxes(targets.reshape(*w, S, C), -1, -2).astype(outputs.dtype)
    return function(outputs, wanted).mean(axis=-2)


def by_position(loss: Loss) -> bool:
    """Returns whether a position of a row, such as a frame, is a sample of the loss."""
    return isinstance(loss, str) and facts(loss).targets == "classes"


def rows_first(loss: Loss, outputs: PyTree) -> PyTree:
    """Returns outputs as functions of the user's own get them.

    A single output has no axis. Positions come one after the other, as their targets
    do, but a custom loss gets both by rows.
    """
    if isinstance(loss, OwnLoss) and loss.positions is None:
        return outputs
    outputs = outputs[0] if outputs.shape[0] == 1 else outputs.T
    if isinstance(loss, OwnLoss) and loss.positions:
        return outputs.reshape(-1, *loss.positions, *outputs.shape[1:])
    return outputs


def _own(
    loss: OwnLoss, outputs: PyTree, targets: Num[Array, " S *t"]
) -> Float[Array, " S"]:
    return loss.function(rows_first(loss, outputs), targets)


@cache
def _function(name: str) -> Callable[[PyTree, PyTree], PyTree]:
    return function_at(facts(name).function, f"function of the loss {name!r}")


def softmax(
    logits: Float[Array, "*w C S"], labels: Num[Array, "*w S"]
) -> Float[Array, "*w S"]:
    """Returns negative log-likelihoods, in nats."""
    chosen = jax.nn.one_hot(labels, logits.shape[-2], axis=-2, dtype=logits.dtype)
    top = jax.lax.stop_gradient(logits.max(axis=-2, keepdims=True))
    shifted = logits - top
    log_sum = jnp.log(jnp.exp(shifted).sum(axis=-2))
    # Not the other way round: jaxlib 0.10 then sums wrongly for several models at once
    # and many samples (YNNPACK's sums of a product whose first factor is repeated).
    return log_sum - (shifted * chosen).sum(axis=-2)


def sigmoid(
    logits: Float[Array, "*w 1 S"], labels: Num[Array, "*w S"]
) -> Float[Array, "*w S"]:
    """Returns negative log-likelihoods of two classes, in nats."""
    z = logits[..., 0, :]
    return jax.nn.softplus(z) - labels * z


def taylor(
    logits: Float[Array, "*w 1 S"], labels: Num[Array, "*w S"]
) -> Float[Array, "*w S"]:
    """Returns `sigmoid` to second order, ln 2 - s z / 2 + z^2 / 8, s = +-1 (F-10)."""
    z = logits[..., 0, :]
    return math.log(2) + (0.5 - labels) * z + z**2 / 8


def hinge(
    logits: Float[Array, "*w C S"], labels: Int[Array, "*w S"]
) -> Float[Array, "*w S"]:
    """Returns max(0, 1 - margin), one against the rest, summed over the classes.

    Its subgradient is 0 at the kink (M-13).
    """
    if logits.shape[-2] == 1:
        own = labels[..., None, :] == 1
    else:
        own = jax.nn.one_hot(labels, logits.shape[-2], axis=-2, dtype=bool)
    margin = jnp.where(own, logits, -logits)
    return jax.nn.relu(1 - margin).sum(axis=-2)


def squared(
    outputs: Float[Array, "*w C S"], wanted: Float[Array, "*w C S"]
) -> Float[Array, "*w C S"]:
    """Returns squared distances."""
    return (outputs - wanted) ** 2


def binary(
    outputs: Float[Array, "*w C S"], wanted: Float[Array, "*w C S"]
) -> Float[Array, "*w C S"]:
    """Returns negative log-likelihoods of independent zeros and ones, in nats."""
    return jax.nn.softplus(outputs) - wanted * outputs


def reduce(
    reduction: str, losses: Float[Array, "*w S"], present: Bool[Array, "*#w S"]
) -> Float[Array, "*w"]:
    """Combines the losses of a batch; padding neither counts nor contributes.

    Args:
        reduction: Way to combine them, `mean` or `sum` (VAFL, V-11).
        losses: Losses of single samples.
        present: Whether a sample is no padding.
    """
    total = jnp.where(present, losses, 0).sum(axis=-1)
    if reduction == "sum":
        return total
    return total / jnp.maximum(present.sum(axis=-1), 1)


def measure(
    problem: "DeviceProblem", model: PyTree, logits: PyTree, metrics: tuple[str, ...]
) -> dict[str, Array]:
    """Returns metrics of a model, by name."""
    found = {}
    for name in metrics:
        record = metric(name)
        if record.takes is Takes.OUTPUTS:
            outputs = rows_first(problem.loss, logits)
            found[name] = record.function()(outputs, problem.y_test)
        else:
            found[name] = record.function()(problem, model, logits)
    return found
