"""The convolutional network made smooth, so that a search finds its way in it.

Where a maximum is taken, a gradient jumps between pixels, and a search that follows it
ends in the next of very many poor minima. A mean weighted by exponentials instead, and
a softplus for the ReLU, have few; sharpened step by step they lead to the network's.
"""

import functools
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ....problem.models.flat import split

if TYPE_CHECKING:
    from ....catalogue.models.cnn.network import CnnNetwork

CONTRAST = 0.3
"""Standard deviation of pixels that differ, the unit of sharpness."""


class Parts(NamedTuple):
    """Arrays of a `CnnNetwork`, or arrays of their shapes, in the flat vector's order.

    Attributes:
        kernels_1: Kernels of the first convolution, `[C1, D, K, K]`.
        bias_1: Biases of its channels.
        kernels_2: Kernels of the second convolution, `[C2, C1, K, K]`.
        bias_2: Biases of its channels.
        dense: Matrix `[C, Q]`; the `Q` inputs are channels, rows and columns, columns
            fastest.
        bias: Biases of the outputs.
    """

    kernels_1: Float[Array, "C1 D K K"]
    bias_1: Float[Array, " C1"]
    kernels_2: Float[Array, "C2 C1 K K"]
    bias_2: Float[Array, " C2"]
    dense: Float[Array, "C Q"]
    bias: Float[Array, " C"]


def parts_of(model: "CnnNetwork", weights: Float[Array, " P"]) -> Parts:
    """Returns the arrays of a flat vector."""
    return Parts(*split(weights, model.shapes))


def smooth_logits(
    model: "CnnNetwork",
    parts: Parts,
    image: Float[Array, " F"],
    sharpness: Float[Array, ""],
) -> Float[Array, " C"]:
    """Returns the logits of the smooth network, which tend to the network's own.

    Args:
        model: Network whose layers are smoothed.
        parts: Weights of the network.
        image: Image, plane by plane, in [0, 1].
        sharpness: > 0, dimensionless: the unit of differences in a layer is its
            kernels' response to differences in the image.
    """
    height, width, depth = model.image
    spread = jnp.full(depth, CONTRAST, image.dtype)
    hidden = image.reshape(depth, height, width)
    for kernels, bias in (
        (parts.kernels_1, parts.bias_1),
        (parts.kernels_2, parts.bias_2),
    ):
        power = jnp.sum(kernels**2, axis=(2, 3)) @ spread**2
        spread = jnp.sqrt(jnp.maximum(power, jnp.finfo(image.dtype).tiny))
        sums = _convolve(hidden, kernels) + bias[:, None, None]
        sharp = (sharpness / spread)[:, None, None]
        hidden = jax.nn.softplus(sharp * _soft_maximum(sums, sharp)) / sharp
    return parts.dense @ hidden.reshape(-1) + parts.bias


def smooth_distance(
    model: "CnnNetwork",
    parts: Parts,
    targets: Parts,
    image: Float[Array, " F"],
    weights: Float[Array, "3"],
    sharpness: Float[Array, ""],
) -> Float[Array, ""]:
    """Returns the distance of the smooth network's gradient from the message."""

    def projected(at: Parts) -> Float[Array, ""]:
        return targets.bias @ smooth_logits(model, at, image, sharpness)

    return _distance(jax.grad(projected)(parts), targets, weights)


def distance(
    model: "CnnNetwork",
    flat: Float[Array, " P"],
    targets: Parts,
    image: Float[Array, " F"],
    weights: Float[Array, "3"],
) -> Float[Array, ""]:
    """Returns the distance of the network's gradient from the message.

    A sum over the kernels of both convolutions and the dense layer, in this order, of
    squared differences in multiples of the target's square. The slopes of the logits
    are the message's, so that it does not matter how small the loss is.

    Args:
        model: Network whose gradient the message is.
        flat: Its weights.
        targets: Message over the norm of its last biases, which are these slopes.
        image: Image at which they are compared, plane by plane, in [0, 1].
        weights: Weights of the three.
    """

    def projected(at: Float[Array, " P"]) -> Float[Array, ""]:
        return targets.bias @ model.apply(at, image[None, :])[:, 0]

    return _distance(parts_of(model, jax.grad(projected)(flat)), targets, weights)


def variation(model: "CnnNetwork", image: Float[Array, " F"]) -> Float[Array, ""]:
    """Returns the mean over pixels of differences to the next ones, nearly absolute."""
    height, width, depth = model.image
    planes = image.reshape(depth, height, width)
    corner = 1e-3  # where the absolute value is round
    steps = [jnp.diff(planes, axis=axis) for axis in (1, 2)]
    lengths = [jnp.sum(jnp.sqrt(step**2 + corner**2) - corner) for step in steps]
    return sum(lengths, jnp.zeros((), image.dtype)) / image.shape[0]


def _distance(
    found: Parts, targets: Parts, weights: Float[Array, "3"]
) -> Float[Array, ""]:
    def relative(one: Array, target: Array) -> Float[Array, ""]:
        size = jnp.sum(target**2)
        return jnp.sum((one - target) ** 2) / jnp.where(size > 0, size, 1)

    each = (
        relative(found.kernels_1, targets.kernels_1),
        relative(found.kernels_2, targets.kernels_2),
        relative(found.dense, targets.dense),
    )
    return weights @ jnp.stack(each)


def _convolve(
    images: Float[Array, "C H W"], kernels: Float[Array, "D C K K"]
) -> Float[Array, "D h w"]:
    """Slides kernels over an image, a single one, in a form that compiles fast."""
    size = kernels.shape[-1]
    rows, columns = (side - size + 1 for side in images.shape[1:])
    views = jnp.stack([images[:, :, j : j + columns] for j in range(size)], axis=1)
    views = jnp.stack([views[:, :, i : i + rows] for i in range(size)], axis=1)
    unfolded = views.reshape(-1, rows * columns)
    sums = kernels.reshape(kernels.shape[0], -1) @ unfolded
    return sums.reshape(-1, rows, columns)


def _soft_maximum(
    images: Float[Array, "C H W"], sharp: Float[Array, "C 1 1"]
) -> Float[Array, "C h w"]:
    """Returns means of blocks, weighted by the exponentials of what they hold."""
    rows, columns = (side // 2 * 2 for side in images.shape[1:])
    quarters = [images[:, i:rows:2, j:columns:2] for i in (0, 1) for j in (0, 1)]
    largest = jax.lax.stop_gradient(functools.reduce(jnp.maximum, quarters))
    shares = [jnp.exp(sharp * (quarter - largest)) for quarter in quarters]
    zero = jnp.zeros_like(largest)
    weighted = (a * b for a, b in zip(shares, quarters, strict=True))
    return sum(weighted, zero) / sum(shares, zero)
