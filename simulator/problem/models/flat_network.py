"""What networks share whose weights are one flat vector of matrices and biases."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .base import Plain
from .flat import matrices, split
from .parts import Shapes, size


@dataclass(frozen=True)
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

        Classifiers of rows have a column a row, `A` is `S`; those of sequences a column
        an element: of the first row's, then of the second's, ...

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


@dataclass(frozen=True)
class FlatNetwork(LayeredNetwork, Plain):
    """A plain classifier of layers."""

    @property
    def num_weights(self) -> int:
        """Length of the flat vector, `P`."""
        return size(self.shapes)

    def regularised(self) -> Bool[np.ndarray, " P"]:
        """Says of each number whether it is regularised: all but biases and gains."""
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
