"""Layers of convolutional networks, in a form that is fast on CPU or on GPU.

Images are `[channels, rows, columns, samples]`: a shift then moves whole runs of
memory, and a channel is one. On GPU XLA lays them out as its convolutions want them.

Time of one step of SGD of a ResNet-18 of a quarter of the channels, batch 32, in a loop
compiled for CPU, one thread, in multiples of ours (0.46 s at best, on shared cores):

    nine shifted views stacked, one matmul                      1.0
    columns, then rows unfolded, one matmul                     1.1
    the same, gradients written by hand                         1.1 to 1.4
    nine shifted views, channels last                           1.2
    nine matmuls added                                          1.6
    nine matmuls added, channels last                           2.3
    lax.conv_general_dilated                                    9 to 10

XLA's own depthwise convolution takes 20 times as long as the sum of shifted views.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import prod

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ....parts.errors import ScenarioError
from ....problem.models.convolution import Form, pool

EPSILON = 1e-5
"""Number that is added to variances, as in PyTorch."""

Images = Float[Array, "C H W S"]
OtherImages = Float[Array, "C_out H_out W_out S"]
"""Images with another number of channels and another size: the outputs of a layer."""


def convolve(
    images: Float[Array, "C H W S"],
    kernels: Float[Array, "D C_in K K"],
    stride: int = 1,
    groups: int = 1,
    form: Form | None = None,
) -> Float[Array, "D H_out W_out S"]:
    """Slides kernels over images: cross-correlation, padded with zeros.

    Args:
        images: Images to convolve.
        kernels: Output channels, input channels of a group, rows, columns; odd, so that
            stride 1 keeps the size.
        stride: Number of pixels from one output to the next.
        groups: Number of groups of channels; outputs of a group depend on its inputs
            alone. As many as there are channels is depthwise.
        form: `patches` (unfold, multiply) or `native` (XLA's convolution); by default
            `patches` on CPU and `native` elsewhere, chosen at tracing.
    """
    if form is None:
        form = "patches" if jax.default_backend() == "cpu" else "native"
    edge = kernels.shape[-1] // 2
    if form == "native":
        return lax.conv_general_dilated(
            images,
            kernels,
            window_strides=(stride, stride),
            padding=[(edge, edge)] * 2,
            dimension_numbers=("CHWN", "OIHW", "CHWN"),
            feature_group_count=groups,
        )
    views = _views(images, kernels.shape[-1], stride)
    if groups > 1 and groups == images.shape[0] == kernels.shape[0]:
        each = kernels.reshape(groups, -1)[:, :, None, None, None]
        return reduce(jnp.add, (each[:, i] * view for i, view in enumerate(views)))
    return _multiplied(views, kernels, groups)


def _views(
    images: Float[Array, "C H W S"], size: int, stride: int
) -> list[Float[Array, "_ H_out W_out S"]]:
    """Returns the pixels under each number of a kernel, row by row of the kernel."""
    edge = size // 2
    padded = jnp.pad(images, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    height, width = images.shape[1:3]
    return [
        padded[:, i : i + height : stride, j : j + width : stride]
        for i, j in product(range(size), repeat=2)
    ]


def _multiplied(
    views: Sequence[Float[Array, "_ H W S"]],
    kernels: Float[Array, "D C_in K K"],
    groups: int,
) -> Float[Array, "D H W S"]:
    unfolded = jnp.stack(views, axis=1) if len(views) > 1 else views[0]
    shape = (kernels.shape[0], *views[0].shape[1:])
    if groups == 1:
        matrix = kernels.reshape(kernels.shape[0], -1)
        return (matrix @ unfolded.reshape(matrix.shape[1], -1)).reshape(shape)
    matrices = kernels.reshape(groups, kernels.shape[0] // groups, -1)
    return (matrices @ unfolded.reshape(groups, matrices.shape[2], -1)).reshape(shape)


def group_norm(
    images: Float[Array, "C H W S"],
    scale: Float[Array, " C"],
    shift: Float[Array, " C"],
    groups: int,
) -> Float[Array, "C H W S"]:
    """Normalises each sample's groups of channels, then scales and shifts channels.

    Source: Wu and He, Group Normalization (2018), equations 1 to 6.
    """
    # Only channels are divided: a GPU may lay out the rest as it likes.
    split = images.reshape(groups, -1, *images.shape[1:])
    centred = split - split.mean(axis=(1, 2, 3), keepdims=True)
    variance = jnp.square(centred).mean(axis=(1, 2, 3), keepdims=True)
    normal = (centred * lax.rsqrt(variance + EPSILON)).reshape(images.shape)
    return normal * _wide(scale) + _wide(shift)


def batch_norm(
    images: Float[Array, "C H W S"],
    scale: Float[Array, " C"],
    shift: Float[Array, " C"],
    mean: Float[Array, " C"],
    variance: Float[Array, " C"],
) -> Float[Array, "C H W S"]:
    """Normalises channels by given means and variances, then scales and shifts them.

    Source: Ioffe and Szegedy, Batch Normalization (2015), Algorithm 2, line 11.
    """
    factor = scale * lax.rsqrt(variance + EPSILON)
    return (images - _wide(mean)) * _wide(factor) + _wide(shift)


def moments(
    images: Float[Array, "C H W S"],
) -> tuple[Float[Array, " C"], Float[Array, " C"]]:
    """Returns the channels' means and their variances, divided by the count."""
    mean = images.mean(axis=(1, 2, 3))
    return mean, jnp.square(images - _wide(mean)).mean(axis=(1, 2, 3))


def unbiased(
    variance: Float[Array, " C"], images: Float[Array, "C H W S"]
) -> Float[Array, " C"]:
    """Returns variances divided by the count less one.

    Raises:
        ScenarioError: There is only one number per channel.
    """
    count = prod(images.shape[1:])
    if count < 2:
        raise ScenarioError(
            "batch normalisation needs at least two numbers per channel, got one "
            'sample of one pixel; set problem.model.norm to "group", or larger batches'
        )
    return variance * (count / (count - 1))


def max_pool(
    images: Float[Array, "C H W S"], size: int, stride: int, padding: int = 0
) -> Float[Array, "C H_out W_out S"]:
    """Returns the largest of `size` x `size` pixels around every `stride`-th.

    Rows and columns that fill no pool are dropped. Equal maxima share the gradient.

    Args:
        images: Images to pool.
        size: Height and width of a pool, pixels.
        stride: Number of pixels from one pool to the next.
        padding: Number of rows and columns on each side, whose pixels are never the
            largest.
    """
    if (size, stride, padding) == (2, 2, 0):
        return pool(images)
    edge = (padding, padding)
    low = float(jnp.finfo(images.dtype).min)
    padded = jnp.pad(images, ((0, 0), edge, edge, (0, 0)), constant_values=low)
    height, width = (side - size + 1 for side in padded.shape[1:3])
    rows = reduce(
        jnp.maximum, (padded[:, i : i + height : stride] for i in range(size))
    )
    return reduce(
        jnp.maximum, (rows[:, :, j : j + width : stride] for j in range(size))
    )


def shuffle(images: Float[Array, "C H W S"], groups: int) -> Float[Array, "C H W S"]:
    """Reorders channels: in turn one from each of `groups` groups.

    Source: Zhang, Zhou, Lin and Sun, ShuffleNet (2018), section 3.1.
    """
    split = images.reshape(groups, -1, *images.shape[1:])
    return split.swapaxes(0, 1).reshape(images.shape)


def _wide(each: Float[Array, " C"]) -> Float[Array, "C 1 1 1"]:
    return each[:, None, None, None]
