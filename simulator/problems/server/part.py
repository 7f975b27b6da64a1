"""Options of the server's network, and its shapes. No JAX here."""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from simulator.config.base import Config
from simulator.problems.models.shapes import Shapes, size

Count = Annotated[int, Field(ge=1)]


class ServerModel(Config):
    """A network at the server over what the parties send: theta_0 of VAFL.

    Without it the parties send logits, which are added up (V-13). With it they send
    vectors, which the server combines; then come fully connected layers, ReLU between
    them, and a last one to the logits.

    Source: VAFL, equation 1 and appendix G; V-26, V-27, F-29.
    """

    width: Count
    """Numbers that a party sends of a sample, or of each of its views."""
    views: Count = 1
    """Views of a party: its columns are so many rows of equal length, and its network
    is applied to each of them, with the same weights."""
    combine: Literal["sum", "weighted_sum", "concat"] = "concat"
    """`weighted_sum`: each view of each party has one learned factor (V-26); `concat`
    lays all vectors end to end."""
    hidden: tuple[Count, ...] = ()
    """Units of each hidden layer; without any, one layer gives the logits."""

    @property
    def num_sent(self) -> int:
        """Numbers that a party sends of a sample, of all of its views."""
        return self.views * self.width

    def sizes(self, num_parties: int, num_outputs: int) -> tuple[int, ...]:
        """Returns the inputs of the first layer, the units of all, and the logits."""
        vectors = num_parties * self.views if self.combine == "concat" else 1
        return (vectors * self.width, *self.hidden, num_outputs)

    def shapes(self, num_parties: int, num_outputs: int) -> Shapes:
        """Returns the shapes of all weights, in the order of the flat vector.

        The factors of `weighted_sum` come first, party by party, then the matrix and
        the biases of each layer.

        Args:
            num_parties: Number of parties, M.
            num_outputs: Number of logits, C.
        """
        sizes = self.sizes(num_parties, num_outputs)
        layers = pairwise(sizes)
        dense = [shape for inp, out in layers for shape in ((out, inp), (out,))]
        weighted = self.combine == "weighted_sum"
        factors = [(num_parties * self.views,)] if weighted else []
        return (*factors, *dense)

    def num_weights(self, num_parties: int, num_outputs: int) -> int:
        """Returns the number of weights, factors and biases included."""
        return size(self.shapes(num_parties, num_outputs))
