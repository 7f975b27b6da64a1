"""Estimates of a policy's gradient by samples of other policies."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ....problem.models.base import Classifier

SMALL = 1e-6
"""Added to the standard deviation of a group's rewards."""


def log_policy(
    model: Classifier, weights: Float[Array, "..."], x: Float[Array, "S P"]
) -> Float[Array, "C _"]:
    """Returns the logarithms of the chances of all actions, of rows or their tokens.

    A single output is the log odds of the second of two actions.
    """
    logits = model.apply(weights, x)
    if len(logits) == 1:
        logits = jnp.concatenate([jnp.zeros_like(logits), logits])
    return jax.nn.log_softmax(logits, axis=0)


def drawn(
    log_chance: Float[Array, "C B"], uniform: Float[Array, " B"]
) -> Int[Array, " B"]:
    """Returns the action of each sample: how many cumulated chances are below u."""
    cumulated = jnp.cumsum(jnp.exp(log_chance), axis=0)
    below = (cumulated < uniform[None]).sum(axis=0, dtype=jnp.int32)
    return jnp.minimum(below, len(log_chance) - 1)


def taken(
    chances: Float[Array, "C B"], actions: Int[Array, " B"]
) -> Float[Array, " B"]:
    """Returns the entry of each sample's action."""
    return jnp.take_along_axis(chances, actions[None], axis=0)[0]


def advantages(kind: str, reward: Float[Array, " B"], group: int) -> Float[Array, " B"]:
    """Returns the advantage of each sample, of groups one after the other."""
    if kind == "reward":
        return reward
    of_group = reward.reshape(-1, group)
    mean = of_group.mean(axis=1, keepdims=True)
    if kind == "leave_one_out":
        found = (of_group - mean) * (group / (group - 1))
    else:
        # Over G - 1, as verl and others do by torch.std; the paper leaves it open.
        spread = of_group.std(axis=1, keepdims=True, ddof=1)
        found = (of_group - mean) / (spread + SMALL)
    return found.reshape(-1)


def weighted(
    correction: str,
    limit: Float[Array, ""],
    ratio: Float[Array, " B *L"],
    advantage: Float[Array, " B *one"],
) -> tuple[Float[Array, " B *L"], Bool[Array, " B *L"]]:
    """Returns w of samples, or tokens of answers, and whether it was limited."""
    limited = jnp.zeros(ratio.shape, bool)
    if correction == "none":
        return jnp.ones_like(ratio), limited
    if correction == "truncated":
        return jnp.minimum(ratio, limit), ratio > limit
    if correction == "clipped":
        limited = (advantage > 0) & (ratio > 1 + limit)
        limited |= (advantage < 0) & (ratio < 1 - limit)
        return jnp.where(limited, 0, ratio), limited
    return ratio, limited
