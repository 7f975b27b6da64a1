"""Malenia: the mean over clients of each one's mean contribution."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .base import Contribution, TableKernel
from .table import ClientTable


class MaleniaKernel(TableKernel):
    """Means of the clients' contributions of a round, which the commit empties."""

    def begin(self, num_clients: int, weights: Float[Array, "..."]) -> ClientTable:
        return ClientTable.empty(num_clients, weights)

    def take(
        self, memory: ClientTable, arrival: Contribution
    ) -> tuple[ClientTable, Float[Array, "..."]]:
        """Takes a contribution into its client's mean.

        Before the commit, and of clients that are not asked, some have none.
        """
        table = memory.averaged(arrival.client, arrival.message)
        there = (table.counts > 0).sum()
        direction = table.sum / jnp.maximum(there, 1)
        return table.cleared(arrival.commits), direction
