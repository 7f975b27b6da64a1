"""Flat vectors of weights: their arrays, initial values, and networks of one."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import accumulate

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from .base import Plain
from .parts import Shapes, size


def split(
    weights: Float[Array, " P"], shapes: Sequence[tuple[int, ...]]
) -> list[Float[Array, "..."]]:
    """Returns the arrays of a flat vector, in the order of `shapes`.

    Its gradient puts the slopes of the arrays one after the other. That of slices is a
    sum of vectors as long as all weights, one for each array, which took 90 % of an
    update with 35 arrays of 0.8 million weights and 65 % with six of 0.1 million.
    """
    return _split(weights, tuple(map(tuple, shapes)))


def _slices(weights: Float[Array, " P"], shapes: Shapes) -> list[Float[Array, "..."]]:
    sizes = [math.prod(shape) for shape in shapes]
    return [
        weights[end - size : end].reshape(shape)
        for shape, size, end in zip(shapes, sizes, accumulate(sizes), strict=True)
    ]


def _split_forwards(
    weights: Float[Array, " P"], shapes: Shapes
) -> tuple[list[Float[Array, "..."]], None]:
    return _slices(weights, shapes), None


def _split_backwards(
    shapes: Shapes, _: None, slopes: list[Float[Array, "..."]]
) -> tuple[Float[Array, " P"]]:
    return (jnp.concatenate([slope.reshape(-1) for slope in slopes]),)


_split = jax.custom_vjp(_slices, nondiff_argnums=(1,))
_split.defvjp(_split_forwards, _split_backwards)


def matrices(shapes: Sequence[tuple[int, ...]]) -> Bool[np.ndarray, " P"]:
    """Returns whether each number is of a matrix or kernel, not of a bias."""
    return np.concatenate(
        [np.full(math.prod(shape), len(shape) > 1) for shape in shapes]
    )


def glorot(shapes: Sequence[tuple[int, ...]]) -> list[float]:
    """Returns the limits of Glorot's uniform law, zero for biases: Keras's default.

    The limit is sqrt(6 / (inputs + outputs)) of a unit, where a pixel of a kernel
    counts as one of each.

    Args:
        shapes: Shapes of matrices `[outputs, inputs]`, of kernels `[outputs, inputs,
            rows, columns]`, and of biases.

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward
        neural networks (2010), equation 16.
    """
    return [
        math.sqrt(6 / (math.prod(shape[2:]) * (shape[0] + shape[1])))
        if len(shape) > 1
        else 0.0
        for shape in shapes
    ]


def by_inputs(shapes: Sequence[tuple[int, ...]]) -> list[float]:
    """Returns the limits 1/sqrt(inputs of a unit) of a uniform law: PyTorch's default.

    That is Kaiming-uniform with a = sqrt 5.

    Args:
        shapes: Shapes of matrices or kernels, outputs first, each (optionally except
            the last) followed by its biases, which have the same limit.
    """
    fans = [math.prod(shape[1:]) for shape in shapes[::2]]
    return [1 / math.sqrt(fans[part // 2]) for part in range(len(shapes))]


def drawn(
    key: Key[Array, ""],
    shapes: Sequence[tuple[int, ...]],
    limits: Sequence[float | np.ndarray],
) -> Float[Array, " P"]:
    """Draws every array uniformly between minus and plus its limit.

    Values are single precision in all runs, so that those in double precision start
    from the same.
    """
    wide = [
        np.broadcast_to(np.asarray(limit, np.float32), shape).reshape(-1)
        for limit, shape in zip(limits, shapes, strict=True)
    ]
    limit = np.concatenate(wide)
    unit = jax.random.uniform(key, limit.shape, jnp.float32, minval=-1, maxval=1)
    return unit * limit


class LayeredNetwork(ABC):
    """Layers whose arrays are one flat vector."""

    @property
    @abstractmethod
    def shapes(self) -> Shapes:
        """Shapes of the arrays, in their order in the flat vector."""

    def apply(
        self,
        weights: Float[Array, " P"],
        x: Float[Array, "S F"],
        noise: Sequence[Float[Array, "..."]] = (),
    ) -> Float[Array, "C A"]:
        """Returns the outputs for some rows, however many: block by block.

        Outputs of row classifiers have a column per row, `A` is `S`; of sequence
        classifiers a column per element: of the first row's, then of the second's, ...

        Args:
            weights: Flat vector.
            x: Rows.
            noise: Noise inside each hidden layer, of `hidden_shapes` and samples; none
                by default.
        """
        parts = split(weights, self.shapes)
        if noise:
            return self._outputs(parts, x, noise)
        return in_blocks(lambda block: self._outputs(parts, block), x)

    @abstractmethod
    def _outputs(
        self,
        parts: Sequence[Float[Array, "..."]],
        x: Float[Array, "S F"],
        noise: Sequence[Float[Array, "..."]] = (),
    ) -> Float[Array, "C A"]:
        """Returns the outputs for a block of rows; noise only as `hidden_shapes`."""


class FlatNetwork(LayeredNetwork, Plain):
    """A plain classifier of layers."""

    @property
    def num_weights(self) -> int:
        """Length of the flat vector, `P`."""
        return size(self.shapes)

    def regularised(self) -> Bool[np.ndarray, " P"]:
        """Returns whether each number is regularised: all but biases and gains."""
        return matrices(self.shapes)


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
