"""Estimates of a policy's gradient by samples of other policies."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

SMALL = 1e-6
"""Added to the standard deviation of a group's rewards."""


class Weighted(NamedTuple):
    """Samples as they count in a step.

    Attributes:
        weight: w of each sample.
        ratio: r of each sample.
        limited: Whether it was truncated or clipped.
    """

    weight: Float[Array, " B"]
    ratio: Float[Array, " B"]
    limited: Bool[Array, " B"]


def log_policy(
    model: Any, weights: Float[Array, "..."], x: Float[Array, "S P"]
) -> Float[Array, "C S"]:
    """Returns the logarithms of the chances of all actions.

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


def advantages(kind: str, reward: Float[Array, " B"], group: int) -> Float[Array, " B"]:
    """Returns the advantage of each sample, of groups one after the other.

    Args:
        kind: As of `PolicyGradient.advantage`.
        reward: Rewards.
        group: Samples of a group.
    """
    if kind == "reward":
        return reward
    of_group = reward.reshape(-1, group)
    mean = of_group.mean(axis=1, keepdims=True)
    if kind == "leave_one_out":
        found = (of_group - mean) * (group / (group - 1))
    else:
        found = (of_group - mean) / (of_group.std(axis=1, keepdims=True) + SMALL)
    return found.reshape(-1)


def weighted(
    correction: str,
    limit: Float[Array, ""],
    ratio: Float[Array, " B"],
    advantage: Float[Array, " B"],
) -> Weighted:
    """Returns what samples count by.

    Args:
        correction: As of `PolicyGradient.correction`.
        limit: c of `truncated`, epsilon of `clipped`.
        ratio: r of each sample.
        advantage: A of each sample.
    """
    limited = jnp.zeros(ratio.shape, bool)
    if correction == "none":
        return Weighted(jnp.ones_like(ratio), ratio, limited)
    if correction == "truncated":
        limited = ratio > limit
        return Weighted(jnp.minimum(ratio, limit), ratio, limited)
    if correction == "clipped":
        limited = (advantage > 0) & (ratio > 1 + limit)
        limited |= (advantage < 0) & (ratio < 1 - limit)
        return Weighted(jnp.where(limited, 0, ratio), ratio, limited)
    return Weighted(ratio, ratio, limited)
