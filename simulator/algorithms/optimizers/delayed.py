"""Delayed Nesterov: momentum that is renewed once in a period of updates."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .arrays import ModelArrays
from .base import UpdateRule
from .part import DelayedNesterov


class DelayedState(NamedTuple):
    """The momentum, and what has come since it was renewed.

    Attributes:
        momentum: m.
        buffer: Sum of the updates' gradients of this period.
    """

    momentum: Float[Array, "..."]
    buffer: Float[Array, "..."]


class DelayedNesterovRule(UpdateRule):
    """Steps of 1 / N of each gradient, and of the momentum by the shares of a period.

    Attributes:
        config: Its options.

    Source: Liu et al., Asynchronous Local-SGD Training for Language Modeling (2024),
    Algorithm 3; methods.md, section 10.
    """

    config: DelayedNesterov = eqx.field(static=True)

    def init(
        self, weights: Float[Array, "..."], arrays: ModelArrays | None
    ) -> DelayedState:
        return DelayedState(jnp.zeros_like(weights), jnp.zeros_like(weights))

    def update(
        self,
        gradient: Float[Array, "..."],
        state: DelayedState,
        weights: Float[Array, "..."],
        count: Int[Array, ""],
        arrays: ModelArrays | None,
    ) -> tuple[Float[Array, "..."], DelayedState]:
        """Returns the direction, with the momentum's share, and the state after it."""
        period, decay, spread = (
            self.config.period,
            self.config.decay,
            self.config.spread,
        )
        last = (count + 1) % period == 0
        buffer = state.buffer + gradient
        renewed = decay * state.momentum + buffer / period
        momentum = jnp.where(last, renewed, state.momentum)
        share = jnp.where(last, 1 - spread * (period - 1), spread)
        direction = (share * decay).astype(momentum.dtype) * momentum
        left = jnp.where(last, jnp.zeros_like(buffer), buffer)
        return direction + gradient / period, DelayedState(momentum, left)

    def ahead(
        self,
        weights: Float[Array, "..."],
        state: DelayedState,
        step_size: Float[Array, ""],
    ) -> Float[Array, "..."]:
        """Returns what clients read: the model, or where its momentum leads it."""
        if not self.config.look_ahead:
            return weights
        step = (step_size * self.config.decay).astype(weights.dtype)
        return weights - step * state.momentum
