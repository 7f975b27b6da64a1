"""Pools of 2 x 2 pixels, with gradients that are fast in a compiled loop on CPU.

Time of one step of SGD of the network that `convolution` was measured with, in
multiples of ours:

    maximum by reshaping, the gradient below            1.0
    maximum by reshaping, JAX's gradient                1.2
    maximum of four strided slices                      1.5
    lax.reduce_window (its gradient scatters)           1.4
    average by reshaping                                1.0
    average of four strided slices                      1.1
    average by lax.reduce_window                        1.0
"""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Pooling = Literal["max", "average"]


def pool(
    pooling: Pooling, images: Float[Array, "C H W S"]
) -> Float[Array, "C H_out W_out S"]:
    """Halves height and width; an odd last row or column is dropped.

    Args:
        pooling: Kind, `max` or `average` of the four pixels. Equal maxima share the
            gradient.
        images: Images by channel, row, column and sample.
    """
    channels, height, width, samples = images.shape
    rows, columns = height // 2, width // 2
    blocks = images[:, : 2 * rows, : 2 * columns].reshape(
        channels, rows, 2, columns, 2, samples
    )
    return _largest(blocks) if pooling == "max" else blocks.mean(axis=(2, 4))


@jax.custom_jvp
def _largest(blocks: Float[Array, "C h 2 w 2 S"]) -> Float[Array, "C h w S"]:
    return blocks.max(axis=(2, 4))


@_largest.defjvp
def _largest_jvp(
    primals: tuple[Float[Array, "C h 2 w 2 S"]],
    tangents: tuple[Float[Array, "C h 2 w 2 S"]],
) -> tuple[Float[Array, "C h w S"], Float[Array, "C h w S"]]:
    (blocks,), (tangent,) = primals, tangents
    largest = blocks.max(axis=(2, 4))
    wins = blocks == largest[:, :, None, :, None]
    shared = jnp.where(wins, tangent, 0).sum(axis=(2, 4))
    return largest, shared / wins.sum(axis=(2, 4)).astype(tangent.dtype)
