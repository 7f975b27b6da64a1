"""One hidden layer, as a party's model."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from ....problem.models.parts import Model, Shapes, size

if TYPE_CHECKING:
    from .network import MlpNetwork


class Mlp(Model):
    """One hidden layer, as a party's model: its outputs are added to the others'.

    In transfer learning, the outputs of a party are the hidden units themselves.
    """

    kind: Literal["mlp"] = "mlp"
    families: ClassVar[tuple[str, ...]] = ("vertical",)
    hidden: Annotated[int, Field(ge=1)] = 64
    """Number of hidden units."""
    activation: Literal["relu", "tanh"] = "tanh"
    """Activation of the hidden units."""

    @property
    def num_aligned(self) -> int:
        return self.hidden

    @property
    def num_layers(self) -> int:
        return 2

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return size(shapes(num_features, self.hidden, num_outputs))

    def make(self, num_outputs: int, num_features: int, family: str) -> "MlpNetwork":
        """Returns a party's network; of transfer learning, its hidden layer alone."""
        from .network import MlpNetwork

        linear = family != "transfer"
        outputs = num_outputs if linear else self.hidden
        return MlpNetwork(outputs, num_features, self.hidden, self.activation, linear)


def shapes(num_features: int, hidden: int, num_outputs: int) -> Shapes:
    """Returns the shapes of the hidden layer's matrix and biases, and of the outputs.

    Only the hidden layer has biases, since outputs of parties are added up.
    """
    return ((hidden, num_features), (hidden,), (num_outputs, hidden))
