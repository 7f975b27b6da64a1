"""Ringleader: means of a round that serve for as many commits as there are clients."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ....files.timeline import NO_WORKER
from .base import Contribution, TableKernel
from .table import ClientTable


class TwoRounds(NamedTuple):
    """Means of this round and of the next one.

    Attributes:
        current: ClientTable of this round.
        following: ClientTable of the next round.
        served: Clients that have made their commit of this round.
    """

    current: ClientTable
    following: ClientTable
    served: Bool[Array, " K"]


class RingleaderKernel(TableKernel):
    """Two tables; who has made a commit of this round contributes to the next one."""

    def begin(self, num_clients: int, weights: Float[Array, "..."]) -> TwoRounds:
        empty = ClientTable.empty(num_clients, weights)
        return TwoRounds(empty, empty, jnp.zeros(num_clients, bool))

    def take(
        self, memory: TwoRounds, arrival: Contribution
    ) -> tuple[TwoRounds, Float[Array, "..."]]:
        client, message = arrival.client, arrival.message
        again = memory.served.at[client].get(mode="fill", fill_value=False)
        current = memory.current.averaged(jnp.where(again, NO_WORKER, client), message)
        later = jnp.where(again, client, NO_WORKER)
        following = memory.following.averaged(later, message)
        direction = current.sum / arrival.num_clients
        served = memory.served.at[client].set(arrival.commits | again, mode="drop")
        over = served.all()
        # Not by `where`, which would choose every number of both in each row.
        current, following = jax.lax.cond(
            over, lambda: (following, current), lambda: (current, following)
        )
        return TwoRounds(current, following.cleared(over), served & ~over), direction
