"""LSTM layers as a party's network: a sequence becomes a few numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float, Key

from ..flat import drawn
from ..flat_network import LayeredNetwork
from ..parts import Shapes
from .layers import both_ways, last_of
from .part import Lstm

OF_LAYER = 4
"""Number of arrays of an LSTM layer."""


@dataclass(frozen=True)
class PartyLstm(LayeredNetwork):
    """Bidirectional LSTM layers, and one forwards whose last outputs are sent.

    Attributes:
        config: Options: layers, cells and frames of a row.
        num_outputs: Number of cells of the last layer, `C`.
        num_features: Number of columns of a row, of all of its frames.

    Source: VAFL, appendix G (MIMIC-III); the cell is that of `LstmNetwork`.
    """

    config: Lstm
    num_outputs: int
    num_features: int

    @property
    def shapes(self) -> Shapes:
        return self.config.shapes_of_party(self.num_features, self.num_outputs)

    @property
    def hidden_shapes(self) -> Shapes:
        """Shapes of the outputs of each bidirectional layer for a sample."""
        each = (self.config.frames, 2 * self.config.cells)
        return (each,) * self.config.layers

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Draws every layer uniformly within ±1/sqrt(cells), PyTorch's default."""
        cells = [self.config.cells] * self.config.layers + [self.num_outputs]
        limits = [1 / math.sqrt(fan) for fan in cells for _ in range(OF_LAYER)]
        return drawn(key, self.shapes, limits)

    def features(self, x: Float[np.ndarray, "N F"]) -> Float[np.ndarray, "N F"]:
        """Returns the features as they are."""
        return x

    def _outputs(
        self,
        parts: Sequence[Float[Array, "..."]],
        x: Float[Array, "S F"],
        noise: Sequence[Float[Array, "L H2 S"]] = (),
    ) -> Float[Array, "C S"]:
        """Returns the last outputs for rows of features, frame after frame."""
        hidden = x.reshape(x.shape[0], self.config.frames, -1).swapaxes(0, 1)
        for layer in range(self.config.layers):
            hidden = both_ways(hidden, *parts[OF_LAYER * layer :][:OF_LAYER])
            if noise:
                hidden = hidden + noise[layer].swapaxes(1, 2)
        return last_of(hidden, *parts[-OF_LAYER:]).T
