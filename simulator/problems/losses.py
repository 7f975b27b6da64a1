"""Losses of single samples, and their sum or mean over a batch."""

import math
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Loss = Literal["softmax", "sigmoid", "hinge", "taylor"]


def per_sample(
    loss: Loss, logits: Float[Array, "*w C S"], labels: Int[Array, "*w S"]
) -> Float[Array, "*w S"]:
    """Returns the loss of each sample.

    `softmax` and `sigmoid` are negative log-likelihoods in nats. `hinge` is one against
    the rest: max(0, 1 - margin) summed over the classes, or of the only output, with
    subgradient 0 at the kink (M-13). `taylor` is the second-order expansion of
    `sigmoid` around 0, whose derivative is affine: ln 2 - s z / 2 + z^2 / 8 with the
    label s = +-1 (F-10).
    """
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


def _hinge(
    logits: Float[Array, "*w C S"], labels: Int[Array, "*w S"]
) -> Float[Array, "*w S"]:
    if logits.shape[-2] == 1:
        own = labels[..., None, :] == 1
    else:
        own = jax.nn.one_hot(labels, logits.shape[-2], axis=-2, dtype=bool)
    margin = jnp.where(own, logits, -logits)
    return jax.nn.relu(1 - margin).sum(axis=-2)


def correct(logits: Float[Array, "C S"], labels: Int[Array, " S"]) -> Bool[Array, " S"]:
    """Says of each sample whether the class of its largest logit is its own."""
    if logits.shape[0] == 1:
        return (logits[0] > 0) == (labels == 1)
    return logits.argmax(axis=0) == labels


def reduce(
    reduction: str, losses: Float[Array, "*w S"], present: Bool[Array, "*w S"]
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
