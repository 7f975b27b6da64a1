"""The network of one weight a column."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from .part import Diagonal


class DiagonalNetwork(NamedTuple):
    """One weight a column.

    Attributes:
        num_columns: Number of columns, weights and outputs, `P`.
    """

    num_columns: int

    @property
    def num_noised(self) -> int:
        """All weights: there is one layer."""
        return self.num_columns

    @property
    def num_statistics(self) -> int:
        """None."""
        return 0

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Starts at zero, from which the optimum has a known distance."""
        return jnp.zeros(self.num_columns)

    def features(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N P"]:
        """Returns the features as they are."""
        return x

    def regularised(self) -> Bool[np.ndarray, " P"]:
        """Says of each weight whether it is regularised: all are."""
        return np.ones(self.num_columns, bool)

    def apply(
        self, weights: Float[Array, " P"], x: Float[Array, "S P"]
    ) -> Float[Array, "P S"]:
        """Returns `w_j x_j` of some rows."""
        return (weights[None, :] * x).T

    def train(
        self, weights: Float[Array, " P"], x: Float[Array, "S P"]
    ) -> tuple[Float[Array, "P S"], Float[Array, " statistics"]]:
        """Returns the outputs of a batch, and no statistics."""
        return self.apply(weights, x), jnp.zeros(0, weights.dtype)


def diagonal(
    config: Diagonal, num_outputs: int, num_features: int, family: str
) -> DiagonalNetwork:
    """Builds the network of a scenario."""
    return DiagonalNetwork(config.num_weights(num_features, num_outputs))
