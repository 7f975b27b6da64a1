"""CA2FL: a buffer of changes, calibrated by every client's former contribution."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .base import Contribution, TableKernel
from .table import ClientTable


class CalibratedBuffer(NamedTuple):
    """Former contributions, and what has changed since.

    Attributes:
        cache: Every client's former contribution; zero before the first one.
        mean: Mean of the former contributions at the last commit, h.
        buffer: Sum of the changes since.
        buffered: Number of them.
    """

    cache: ClientTable
    mean: Float[Array, "..."]
    buffer: Float[Array, "..."]
    buffered: Int[Array, ""]


class Ca2flKernel(TableKernel):
    """A buffer of changes on top of the mean of former contributions."""

    def begin(self, num_clients: int, weights: Float[Array, "..."]) -> CalibratedBuffer:
        zeros = jnp.zeros_like(weights)
        return CalibratedBuffer(
            ClientTable.empty(num_clients, weights), zeros, zeros, jnp.int32(0)
        )

    def take(
        self, memory: CalibratedBuffer, arrival: Contribution
    ) -> tuple[CalibratedBuffer, Float[Array, "..."]]:
        there = arrival.client < arrival.num_clients
        change = jnp.where(there, arrival.message - memory.cache.of(arrival.client), 0)
        cache = memory.cache.replaced(arrival.client, arrival.message)
        buffer, buffered = memory.buffer + change, memory.buffered + there
        direction = memory.mean + buffer / jnp.maximum(buffered, 1)
        commits = arrival.commits
        return CalibratedBuffer(
            cache,
            jnp.where(commits, cache.sum / arrival.num_clients, memory.mean),
            jnp.where(commits, 0, buffer).astype(buffer.dtype),
            jnp.where(commits, 0, buffered).astype(jnp.int32),
        ), direction
