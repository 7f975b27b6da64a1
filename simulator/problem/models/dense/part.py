"""Fully connected layers."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from ..parts import Model, Shapes, size

if TYPE_CHECKING:
    from .network import DenseNetwork


class Dense(Model):
    """Fully connected layers."""

    kind: Literal["dense"] = "dense"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    hidden: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = (
        128,
        64,
    )
    """Units of each hidden layer."""
    activation: Literal["relu", "tanh"] = "relu"
    """Activation of the hidden units."""

    @property
    def num_layers(self) -> int:
        return len(self.hidden) + 1

    @property
    def activation_of_party(self) -> Literal["relu", "tanh"]:
        return self.activation

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return size(shapes((num_features, *self.hidden, num_outputs)))

    def make(self, num_outputs: int, num_features: int, family: str) -> "DenseNetwork":
        from .network import DenseNetwork

        widths = (num_features, *self.hidden, num_outputs)
        return DenseNetwork(widths, self.activation)


def shapes(sizes: Sequence[int]) -> Shapes:
    """Returns the shapes of each layer's matrix and bias."""
    return tuple(
        shape for inp, out in pairwise(sizes) for shape in ((out, inp), (out,))
    )
