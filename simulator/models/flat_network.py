"""What networks share whose weights are one flat vector of matrices and biases."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .flat import matrices
from .shapes import Shapes, size


@dataclass(frozen=True)
class FlatNetwork(ABC):
    """A classifier that takes features as they are, and measures nothing of a batch."""

    @property
    @abstractmethod
    def shapes(self) -> Shapes:
        """Shapes of the arrays, in their order in the flat vector."""

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

    @abstractmethod
    def apply(
        self, weights: Float[Array, " P"], x: Float[Array, "S F"]
    ) -> Float[Array, "C S"]:
        """Returns the logits of some rows, however many."""

    def train(
        self, weights: Float[Array, " P"], x: Float[Array, "S F"]
    ) -> tuple[Float[Array, "C S"], Float[Array, " 0"]]:
        """Returns the logits of a batch, and no statistics of it."""
        return self.apply(weights, x), jnp.zeros(0, weights.dtype)
