"""What stands around a network, and is a network itself."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float, Key

from .shapes import Shapes


@dataclass(frozen=True)
class Around:
    """A network in the place of another: what is asked of it, the inner one answers.

    Attributes:
        network: The inner network.
    """

    network: Any

    @property
    def num_outputs(self) -> int:
        """Number of outputs for a sample."""
        return self.network.num_outputs

    @property
    def num_weights(self) -> int:
        """Length of the flat vector."""
        return self.network.num_weights

    @property
    def shapes(self) -> Shapes:
        """Shapes of the arrays in the vector, where the network says them."""
        return self.network.shapes

    def init(self, key: Key[Array, ""], *num_features: int) -> Float[Array, "*P"]:
        """Returns the weights at the start."""
        return self.network.init(key, *num_features)
