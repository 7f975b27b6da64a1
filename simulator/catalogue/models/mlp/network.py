"""One hidden layer, as a party's model.

The weights of parties of one architecture are stacked, so each has as many numbers as
the widest party needs. Those of columns that a party does not hold start at zero, and
stay there, since the columns are zero.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Key

from ....problem.models.flat import drawn, split
from ....problem.models.parts import Shapes
from ....problem.models.party import ACTIVATIONS
from .part import shapes


class MlpNetwork(NamedTuple):
    """One hidden layer; only it has biases, since outputs are added up.

    Attributes:
        num_outputs: Number of outputs, `C`.
        num_features: Number of columns, padded to the widest party.
        hidden: Number of hidden units.
        activation: Activation of the hidden units.
        linear: Whether outputs are a linear map of the hidden units, or the units
            themselves (then `C` is `hidden`).
    """

    num_outputs: int
    num_features: int
    hidden: int
    activation: Literal["relu", "tanh"]
    linear: bool = True

    @property
    def shapes(self) -> Shapes:
        """Shapes of the arrays, in their order in the flat vector."""
        whole = shapes(self.num_features, self.hidden, self.num_outputs)
        return whole if self.linear else whole[:-1]

    @property
    def hidden_shapes(self) -> Shapes:
        """Shape of the hidden layer's output for a sample."""
        return ((self.hidden,),) if self.linear else ()

    def init(self, key: Key[Array, ""], num_features: int) -> Float[Array, " P"]:
        """Draws the hidden layer as in PyTorch; outputs start at zero.

        The law is uniform within ±1/sqrt(inputs of a unit). The sum over any
        number of parties therefore starts at zero, as with linear models.
        """
        return self._drawn(key, num_features, 0.0)

    def init_sent(self, key: Key[Array, ""], num_features: int) -> Float[Array, " P"]:
        """Draws all layers as in PyTorch, for outputs that a server's network takes."""
        return self._drawn(key, num_features, 1 / math.sqrt(self.hidden))

    def _drawn(self, key: Key[Array, ""], num_features: int, last: float) -> Array:
        first = 1 / math.sqrt(num_features)
        held = np.arange(self.num_features) < num_features
        limits = [np.where(held, first, 0.0), first, last]
        return drawn(key, self.shapes, limits[: len(self.shapes)])

    def apply(
        self,
        weights: Float[Array, " P"],
        x: Float[Array, "S F"],
        noise: Sequence[Float[Array, "_ S"]] = (),
    ) -> Float[Array, "C S"]:
        """Returns the outputs for some rows, with noise in the hidden layer if any."""
        parts = split(weights, self.shapes)
        act = ACTIVATIONS[self.activation]
        sums = parts[0] @ x.T + parts[1][:, None]
        units = act(sums + noise[0] if noise else sums)
        return parts[2] @ units if self.linear else units
