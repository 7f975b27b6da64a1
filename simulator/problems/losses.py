"""Cross-entropies of single samples, and how those of a batch combine."""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Loss = Literal["softmax", "sigmoid"]


def num_outputs(loss: Loss, num_classes: int) -> int:
    """Returns how many logits a sample has: one for `sigmoid`, else one per class."""
    return 1 if loss == "sigmoid" else num_classes


def cross_entropy(
    loss: Loss, logits: Float[Array, "*w C S"], labels: Int[Array, "*w S"]
) -> Float[Array, "*w S"]:
    """Returns the negative log-likelihood of each sample, nats."""
    if loss == "sigmoid":
        z = logits[..., 0, :]
        return jax.nn.softplus(z) - labels * z
    chosen = jax.nn.one_hot(labels, logits.shape[-2], axis=-2, dtype=logits.dtype)
    top = jax.lax.stop_gradient(logits.max(axis=-2, keepdims=True))
    shifted = logits - top
    log_sum = jnp.log(jnp.exp(shifted).sum(axis=-2))
    return log_sum - (chosen * shifted).sum(axis=-2)


def correct(
    loss: Loss, logits: Float[Array, "C S"], labels: Int[Array, " S"]
) -> Bool[Array, " S"]:
    """Says for each sample whether its likeliest class is its own."""
    if loss == "sigmoid":
        return (logits[0] > 0) == (labels == 1)
    return logits.argmax(axis=0) == labels


def reduce(
    reduction: str, losses: Float[Array, "*w S"], present: Bool[Array, "*w S"]
) -> Float[Array, "*w"]:
    """Combines the losses of a batch; padding neither counts nor contributes.

    Args:
        reduction: `mean` or `sum` (VAFL, V-11).
        losses: of single samples.
        present: which of them are not padding.
    """
    total = jnp.where(present, losses, 0).sum(axis=-1)
    if reduction == "sum":
        return total
    return total / jnp.maximum(present.sum(axis=-1), 1)
