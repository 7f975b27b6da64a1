"""IA2SGD and ACED: the mean of every client's newest contribution."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .base import Contribution, TableKernel
from .table import ClientTable


class Newest(NamedTuple):
    """Every client's newest contribution.

    Attributes:
        table: Contributions.
        read_version: Version that each was taken at; None where ages do not count.
    """

    table: ClientTable
    read_version: Int[Array, " K"] | None


class Ia2sgdKernel(TableKernel):
    """Newest contributions of all clients, or of those that are young enough.

    Attributes:
        max_age: Commits since its read up to which a contribution counts; None where
            all do.
    """

    max_age: int | None = eqx.field(static=True)

    def begin(self, num_clients: int, weights: Float[Array, "..."]) -> Newest:
        ages = None if self.max_age is None else jnp.zeros(num_clients, jnp.int32)
        return Newest(ClientTable.empty(num_clients, weights), ages)

    def take(
        self, memory: Newest, arrival: Contribution
    ) -> tuple[Newest, Float[Array, "..."]]:
        table = memory.table.replaced(arrival.client, arrival.message)
        if memory.read_version is None or self.max_age is None:
            return Newest(table, None), table.sum / arrival.num_clients
        own = (arrival.version - arrival.staleness).astype(jnp.int32)
        read = memory.read_version.at[arrival.client].set(own, mode="drop")
        counts = (arrival.version - read <= self.max_age) & (table.counts > 0)
        entries = table.written()
        total = jnp.tensordot(counts.astype(entries.dtype), entries, 1)
        return Newest(table, read), total / jnp.maximum(counts.sum(), 1)
