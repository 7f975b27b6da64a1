"""A network of fully connected layers whose weights are one flat vector."""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Array, Float, Key

from ..flat import FlatNetwork, by_inputs, drawn
from ..parts import Shapes
from ..party import ACTIVATIONS
from .part import shapes


@dataclass(frozen=True)
class DenseNetwork(FlatNetwork):
    """Fully connected layers with an activation between them.

    Attributes:
        sizes: Numbers of inputs, of hidden units layer by layer, and of outputs.
        activation: Activation of the hidden units.
    """

    sizes: tuple[int, ...]
    activation: str = "relu"

    @property
    def shapes(self) -> Shapes:
        return shapes(self.sizes)

    @property
    def num_noised(self) -> int:
        """Number of the first layer's weights, biases included."""
        return self.sizes[1] * (self.sizes[0] + 1)

    @property
    def hidden_shapes(self) -> Shapes:
        """Shapes of each hidden layer's output for a sample."""
        return tuple((size,) for size in self.sizes[1:-1])

    def init(self, key: Key[Array, ""]) -> Float[Array, " P"]:
        """Draws all as in PyTorch."""
        return drawn(key, self.shapes, by_inputs(self.shapes))

    def _outputs(
        self,
        parts: Sequence[Float[Array, "..."]],
        x: Float[Array, "S F"],
        noise: Sequence[Float[Array, "_ S"]] = (),
    ) -> Float[Array, "C S"]:
        layers = list(zip(parts[::2], parts[1::2], strict=True))
        hidden = x.T
        for number, (matrix, bias) in enumerate(layers[:-1]):
            sums = matrix @ hidden + bias[:, None]
            if noise:
                sums = sums + noise[number]
            hidden = ACTIVATIONS[self.activation](sums)
        matrix, bias = layers[-1]
        return matrix @ hidden + bias[:, None]
