"""What enemies know of others: the last message of every honest client."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ...algorithms.federated.stages import Contributions, ServerRow
from ...learning.horizontal import HorizontalProblem


def last_messages(problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
    """Returns an empty table of the clients' last messages, and flags of who sent."""
    K = problem.num_clients
    return jnp.zeros((K, *weights.shape), weights.dtype), jnp.zeros(K, bool)


def overheard(
    row: ServerRow, contributions: Contributions, honest: Bool[Array, " W"], state: Any
) -> Any:
    """Returns the table, and the flags, after a row.

    Args:
        row: The row.
        contributions: Its contributions.
        honest: Flags of those that get into the table.
        state: Table of last messages, and flags of the clients that have sent.
    """
    messages, known = state
    workers = jnp.where(honest, row.event.worker, known.size)  # out of the table
    messages = messages.at[workers].set(contributions.message, mode="drop")
    return messages, known.at[workers].set(True, mode="drop")


def moments(
    state: Any,
) -> tuple[Float[Array, "..."], Float[Array, "..."], Bool[Array, ""]]:
    """Returns mean and deviation of the last messages of all honest clients.

    Args:
        state: As `overheard` returns it.

    Returns:
        Mean; deviation, of the number of messages; whether there are any.
    """
    messages, known = state
    share = known.astype(messages.dtype) / jnp.maximum(known.sum(), 1)
    mean = jnp.tensordot(share, messages, 1)
    deviation = jnp.sqrt(jnp.tensordot(share, (messages - mean[None]) ** 2, 1))
    return mean, deviation, known.any()
