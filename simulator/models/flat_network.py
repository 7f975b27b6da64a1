"""What networks share whose weights are one flat vector of matrices and biases."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .blockwise import in_blocks
from .flat import matrices, split
from .shapes import Shapes, size


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
class FlatNetwork(LayeredNetwork):
    """A classifier that takes features as they are, and measures nothing of a batch."""

    @property
    def num_weights(self) -> int:
        """Length of the flat vector, `P`."""
        return size(self.shapes)

    @property
    def num_statistics(self) -> int:
        """None: no layer normalises by a batch."""
        return 0

    def features(self, x: Float[np.ndarray, "N F"]) -> Float[np.ndarray, "N F"]:
        """Returns the features as they are."""
        return x

    def regularised(self) -> Bool[np.ndarray, " P"]:
        """Says of each number whether it is regularised: all but biases and gains."""
        return matrices(self.shapes)

    def train(
        self, weights: Float[Array, " P"], x: Float[Array, "S F"]
    ) -> tuple[Float[Array, "C A"], Float[Array, " 0"]]:
        """Returns the logits of a batch, and no statistics of it."""
        return self.apply(weights, x), jnp.zeros(0, weights.dtype)
