"""Convolution of images in two forms, for loops compiled for CPU and for GPU; pools.

Time of one step of SGD of the network that `convolve` was measured with, by its pools
of 2 x 2 pixels, in multiples of ours:

    maximum by reshaping, the gradient below            1.0
    maximum by reshaping, JAX's gradient                1.2
    maximum of four strided slices                      1.5
    lax.reduce_window (its gradient scatters)           1.4
"""

from typing import Literal

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

Form = Literal["patches", "native"]

Residuals = tuple[Float[Array, "CKK HWS"], Float[Array, "D C K K"], int, int]


def convolve(
    images: Float[Array, "C H W S"],
    kernels: Float[Array, "D C K K"],
    form: Form | None = None,
) -> Float[Array, "D H_out W_out S"]:
    """Slides square kernels over images: cross-correlation, stride 1, no padding.

    Samples are the last axis, so that a shift of the image moves whole runs of memory.
    The caller adds biases: after a pool of maxima the result is the same, at a quarter
    of the cost.

    On CPU, inside a compiled loop, XLA's own convolution is slow. Time of one step of
    SGD there, in multiples of ours (two convolutions 10@5x5 on 28 x 28, batch 12, one
    thread, medians of bursts in turn; ours 1.4 to 2.0 ms at best, on shared cores):

        columns, then rows unfolded; one matmul; the gradient below     1.0
        the 25 shifted views stacked at once, JAX's gradient            1.1
        columns, then rows unfolded, JAX's gradient                     1.2
        columns unfolded, five matmuls added                            1.3
        banded matrices of the rows                                     1.4
        gathered by index                                               1.6
        samples first, channels last, 25 views stacked                  1.6
        hand-written NumPy step (im2col)                                1.8
        lax.conv_general_dilated_patches, one matmul                    4.1
        lax.conv_general_dilated                                        4.4
        one matmul, its 25 outputs shifted and added                     32

    Args:
        images: Images by channel, row, column and sample.
        kernels: Kernels by output channel, input channel, row and column.
        form: `patches` (unfold, multiply) or `native` (XLA's convolution); by default
            `patches` on CPU and `native` elsewhere, chosen at tracing.

    Returns:
        Images smaller by `K - 1` in both directions.
    """
    if form is None:
        form = "patches" if jax.default_backend() == "cpu" else "native"
    if form == "patches":
        return _patches(images, kernels)
    return lax.conv_general_dilated(
        images,
        kernels,
        window_strides=(1, 1),
        padding="VALID",
        dimension_numbers=("CHWN", "OIHW", "CHWN"),
    )


@jax.custom_vjp
def _patches(
    images: Float[Array, "C H W S"], kernels: Float[Array, "D C K K"]
) -> Float[Array, "D H_out W_out S"]:
    return _forward(images, kernels)[0]


def _forward(
    images: Float[Array, "C H W S"], kernels: Float[Array, "D C K K"]
) -> tuple[Float[Array, "D H_out W_out S"], Residuals]:
    _, height, width, samples = images.shape
    outputs, _, size, _ = kernels.shape
    rows, columns = height - size + 1, width - size + 1
    unfolded = jnp.stack([images[:, :, j : j + columns] for j in range(size)], axis=1)
    unfolded = jnp.stack([unfolded[:, :, i : i + rows] for i in range(size)], axis=1)
    unfolded = unfolded.reshape(-1, rows * columns * samples)
    out = kernels.reshape(outputs, -1) @ unfolded
    return out.reshape(outputs, rows, columns, samples), (
        unfolded,
        kernels,
        height,
        width,
    )


def _backward(
    residuals: Residuals, slope: Float[Array, "D H_out W_out S"]
) -> tuple[Float[Array, "C H W S"], Float[Array, "D C K K"]]:
    """Returns the gradients with respect to images and kernels.

    That of the images unfolds the slope along rows, multiplies, and adds up along
    columns only: adding up all `K * K` shifted products took twice as long.
    """
    unfolded, kernels, height, width = residuals
    outputs, inputs, size, _ = kernels.shape
    _, rows, columns, samples = slope.shape
    to_kernels = lax.dot_general(
        slope.reshape(outputs, -1), unfolded, (((1,), (1,)), ((), ()))
    )

    edge = size - 1
    padded = jnp.pad(
        slope.reshape(outputs, rows, columns * samples), ((0, 0), (edge, edge), (0, 0))
    )
    by_row = jnp.stack(
        [padded[:, edge - i : edge - i + height] for i in range(size)], axis=1
    ).reshape(outputs * size, -1)
    products = kernels.transpose(1, 3, 0, 2).reshape(-1, outputs * size) @ by_row
    products = products.reshape(inputs, size, height, columns * samples)
    to_images = sum(
        jnp.pad(products[:, j], ((0, 0), (0, 0), (j * samples, (edge - j) * samples)))
        for j in range(size)
    )
    return (
        jnp.reshape(to_images, (inputs, height, width, samples)),
        to_kernels.reshape(kernels.shape),
    )


_patches.defvjp(_forward, _backward)


def pool(images: Float[Array, "C H W S"]) -> Float[Array, "C H_out W_out S"]:
    """Halves height and width by the largest of four pixels; equal ones share a slope.

    An odd last row or column is dropped.
    """
    channels, height, width, samples = images.shape
    rows, columns = height // 2, width // 2
    blocks = images[:, : 2 * rows, : 2 * columns].reshape(
        channels, rows, 2, columns, 2, samples
    )
    return _largest(blocks)


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
