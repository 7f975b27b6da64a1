"""The server's network, or a model of a user's own in its place."""

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from ....parts.functions import UserFunction
from ...data.base import Field
from ...data.outputs import OutputForm
from ..flat import drawn, glorot, split
from ..parts import Shapes, size
from ..python.network import REMEMBERED, OwnNetwork
from .part import ServerModel


class ServerNetwork(NamedTuple):
    """Combines the parties' vectors; fully connected layers make logits of them.

    Attributes:
        config: Options: width, views, way to combine, hidden layers.
        num_parties: Number of parties, `M`.
        num_outputs: Number of logits, `C`.

    Source: VAFL, equation 1 and appendix G; V-26.
    """

    config: ServerModel
    num_parties: int
    num_outputs: int

    @property
    def shapes(self) -> Shapes:
        """Shapes of the arrays, as `ServerModel.shapes` documents them."""
        return self.config.shapes(self.num_parties, self.num_outputs)

    @property
    def num_weights(self) -> int:
        """Length of the flat vector, `P0`."""
        return size(self.shapes)

    @property
    def num_factors(self) -> int:
        """Number of learned factors of vectors."""
        weighted = self.config.combine == "weighted_sum"
        return self.num_parties * self.config.views * weighted

    def init(self, key: Key[Array, ""]) -> Float[Array, " P0"]:
        """Draws all layers as in Keras, the library of the paper (V-34).

        Biases start at zero, the factors equal, at the mean of all vectors.
        """
        count = self.num_factors
        weights = drawn(key, self.shapes, glorot(self.shapes))
        return weights.at[:count].set(1 / count) if count else weights

    def apply(
        self, weights: Float[Array, " P0"], h: Float[Array, "M D S"]
    ) -> Float[Array, "C S"]:
        """Returns the logits of some samples.

        Args:
            weights: Flat vector.
            h: Each party's message: the vectors of its views, one after the other.
        """
        parts = split(weights, self.shapes)
        samples = h.shape[-1]
        if self.config.combine == "concat":
            hidden = h.reshape(-1, samples)
        elif self.num_factors:
            vectors = h.reshape(self.num_factors, -1)
            hidden = (parts[0] @ vectors).reshape(-1, samples)
            parts = parts[1:]
        else:
            hidden = h.reshape(-1, self.config.width, samples).sum(axis=0)
        layers = list(zip(parts[::2], parts[1::2], strict=True))
        for number, (matrix, bias) in enumerate(layers):
            hidden = matrix @ hidden + bias[:, None]
            if number < len(layers) - 1:
                hidden = jax.nn.relu(hidden)
        return hidden


class OwnServerNetwork(OwnNetwork):
    """A model whose rows are the vectors of all parties: `[M, width]`, or views too."""

    def apply(self, weights: Float[Array, " P0"], x: Float[Array, "M D S"]) -> PyTree:
        """Returns the outputs of some samples, as the loss takes them."""
        return super().apply(weights, jnp.moveaxis(x, -1, 0).reshape(x.shape[-1], -1))


@lru_cache(maxsize=REMEMBERED)
def own_network(named: UserFunction, form: OutputForm, sent: Field) -> OwnServerNetwork:
    """Returns the server's network that a scenario names.

    Raises:
        ScenarioError: There is no such model, it cannot be used here, or it draws
            random numbers or keeps statistics of batches.
    """
    network = OwnServerNetwork(named, form, (sent,))
    if network.num_statistics or network.takes_key:
        what = "statistics of batches" if network.num_statistics else "dropout"
        raise named.refused(
            f"must be without {what}, for the server answers one query again and "
            f"again, got {named}; leave it out"
        )
    return network
