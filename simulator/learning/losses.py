"""Losses of single samples, and their sum or mean over a batch.

Outputs stand in one of two layouts. Models of this package have outputs first and
samples last, `[C, S]`, of rows with positions all positions of the first row, then of
the second; that is faster. A function of the user's own gets them as users write them,
rows first.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num

from ..config import functions
from ..config.errors import ScenarioError
from ..data.outputs import OF_CLASSES, OutputForm


class OwnLoss(NamedTuple):
    """A loss of the user's own.

    Attributes:
        name: Name of the function, `"module:function"`.
        function: Function of outputs and targets, rows first, to a loss of each row.
        positions: Shape of the positions of a row, where outputs are `[C, S]` of all
            positions; None where outputs stand as a model of the user's own gives them.
    """

    name: str
    function: Callable[[Any, Any], Any]
    positions: tuple[int, ...] | None = None


Name = Literal["softmax", "sigmoid", "hinge", "taylor", "squared", "binary"]
Loss = Name | OwnLoss


def of_form(form: OutputForm, *, as_given: bool) -> Loss:
    """Returns the loss of a problem.

    Args:
        form: The outputs that the loss takes, and its name.
        as_given: Whether outputs stand as a model of the user's own gives them.

    Raises:
        ScenarioError: There is no such function.
    """
    if not form.is_own:
        named: Any = form.loss
        return named
    function = functions.resolve(form.loss, "problem.loss")
    if not callable(function):
        raise ScenarioError(
            f"problem.loss must name a function of outputs and targets, got "
            f"{form.loss!r}, which is {type(function).__name__}; change it"
        )
    return OwnLoss(form.loss, function, None if as_given else form.positions)


def per_sample(
    loss: Loss, outputs: Any, targets: Num[Array, "..."]
) -> Float[Array, "*w S"]:
    """Returns the loss of each sample.

    `softmax` and `sigmoid` are negative log-likelihoods in nats. `hinge` is one against
    the rest: max(0, 1 - margin) summed over the classes, or of the only output, with
    subgradient 0 at the kink (M-13). `taylor` is the second-order expansion of
    `sigmoid` around 0, whose derivative is affine: ln 2 - s z / 2 + z^2 / 8 with the
    label s = +-1 (F-10). `squared` is the squared distance of outputs and targets,
    `binary` the negative log-likelihood of independent zeros and ones in nats, both the
    mean over a row's numbers.

    Args:
        loss: The loss.
        outputs: Outputs `[*w, C, S]`; of a loss of one's own anything, samples first.
        targets: Classes `[*w, S]`; of `squared`, `binary` and losses of one's own
            `[*w, S, ...]`.
    """
    if isinstance(loss, OwnLoss):
        return _own(loss, outputs, targets)
    if loss in OF_CLASSES:
        return _of_classes(loss, outputs, targets)
    return _of_numbers(loss, outputs, targets)


def by_position(loss: Loss) -> bool:
    """Says whether a position of a row, such as a frame, is a sample of the loss."""
    return loss in OF_CLASSES


def rows_first(loss: Loss, outputs: Any) -> Any:
    """Returns outputs as functions of the user's own get them.

    A single output has no axis of its own. Positions stand one after the other, as
    their targets do, but for a loss of one's own, which gets both by rows.
    """
    if isinstance(loss, OwnLoss) and loss.positions is None:
        return outputs
    outputs = outputs[0] if outputs.shape[0] == 1 else outputs.T
    if isinstance(loss, OwnLoss) and loss.positions:
        return outputs.reshape(-1, *loss.positions, *outputs.shape[1:])
    return outputs


def _own(
    loss: OwnLoss, outputs: Any, targets: Num[Array, " S *t"]
) -> Float[Array, " S"]:
    return loss.function(rows_first(loss, outputs), targets)


def _of_classes(
    loss: Loss, logits: Float[Array, "*w C S"], labels: Num[Array, "*w S"]
) -> Float[Array, "*w S"]:
    if loss == "hinge":
        return _hinge(logits, labels)
    if loss == "taylor":
        z = logits[..., 0, :]
        return math.log(2) + (0.5 - labels) * z + z**2 / 8
    if loss == "sigmoid":
        z = logits[..., 0, :]
        return jax.nn.softplus(z) - labels * z
    chosen = jax.nn.one_hot(labels, logits.shape[-2], axis=-2, dtype=logits.dtype)
    top = jax.lax.stop_gradient(logits.max(axis=-2, keepdims=True))
    shifted = logits - top
    log_sum = jnp.log(jnp.exp(shifted).sum(axis=-2))
    # Not the other way round: jaxlib 0.10 then sums wrongly for several models at once
    # and many samples (YNNPACK's sums of a product whose first factor is repeated).
    return log_sum - (shifted * chosen).sum(axis=-2)


def _of_numbers(
    loss: Loss, outputs: Float[Array, "*w C S"], targets: Num[Array, "..."]
) -> Float[Array, "*w S"]:
    *w, C, S = outputs.shape
    wanted = jnp.swapaxes(targets.reshape(*w, S, C), -1, -2).astype(outputs.dtype)
    if loss == "squared":
        return ((outputs - wanted) ** 2).mean(axis=-2)
    return (jax.nn.softplus(outputs) - wanted * outputs).mean(axis=-2)


def _hinge(
    logits: Float[Array, "*w C S"], labels: Int[Array, "*w S"]
) -> Float[Array, "*w S"]:
    if logits.shape[-2] == 1:
        own = labels[..., None, :] == 1
    else:
        own = jax.nn.one_hot(labels, logits.shape[-2], axis=-2, dtype=bool)
    margin = jnp.where(own, logits, -logits)
    return jax.nn.relu(1 - margin).sum(axis=-2)


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
