"""Applies a network to many rows, block by block: unfolded images are large."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

BLOCK = 256
"""Number of rows of a block; a row of 28 x 28 pixels unfolds to 58 kB."""


def in_blocks(
    apply: Callable[[Float[Array, "s F"]], Float[Array, "C sL"]], x: Float[Array, "S F"]
) -> Float[Array, "C SL"]:
    """Returns the result of `apply` for some rows, however many.

    Args:
        apply: Function of a block of rows, which returns a column for each row, or
            several successive columns.
        x: Rows, however many.
    """
    if x.shape[0] <= BLOCK:
        return apply(x)
    whole = x.shape[0] // BLOCK * BLOCK
    blocks = x[:whole].reshape(-1, BLOCK, x.shape[1])
    # Otherwise a gradient would keep the unfolded images of every block.
    found = lax.map(jax.checkpoint(apply), blocks).swapaxes(0, 1)
    found = found.reshape(found.shape[0], -1)
    if whole == x.shape[0]:
        return found
    return jnp.concatenate([found, apply(x[whole:])], axis=1)
