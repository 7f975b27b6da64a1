"""The network of one weight a column."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from ....problem.models.base import Plain


@dataclass(frozen=True)
class DiagonalNetwork(Plain):
    """One weight a column.

    Attributes:
        num_columns: Number of columns, weights and outputs, `P`.
    """

    num_columns: int

    @property
    def num_noised(self) -> int:
        """All weights: there is one layer."""
        return self.num_columns

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Starts at zero, from which the optimum has a known distance."""
        return jnp.zeros(self.num_columns)

    def regularised(self) -> Bool[np.ndarray, " P"]:
        """Returns whether each weight is regularised: all are."""
        return np.ones(self.num_columns, bool)

    def apply(
        self, weights: Float[Array, " P"], x: Float[Array, "S P"]
    ) -> Float[Array, "P S"]:
        return (weights[None, :] * x).T
