"""Models. Weights are `[outputs, features]`: twice as fast on CPU as the transpose."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from simulator.scenario.problems import Linear


class LinearEmbedding(NamedTuple):
    """Embeds rows by `w @ x`; starts at zero.

    Attributes:
        num_outputs: width of the embedding, `C`.
        num_features: columns, padded to the widest party, `P`.
    """

    num_outputs: int
    num_features: int

    def init(self) -> Float[Array, "C P"]:
        """Returns the weights of one party at the start."""
        return jnp.zeros((self.num_outputs, self.num_features))

    def apply(
        self, weights: Float[Array, "C P"], x: Float[Array, "S P"]
    ) -> Float[Array, "C S"]:
        """Returns the embeddings of some rows."""
        return weights @ x.T


def linear(config: Linear, num_outputs: int, num_features: int) -> LinearEmbedding:
    """Builds the linear model."""
    del config
    return LinearEmbedding(num_outputs, num_features)
