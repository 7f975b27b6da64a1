"""Options of the server's network, and its shapes. No JAX here."""

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from ....parts.base import Config
from ....parts.functions import FunctionName, UserFunction
from ...data.base import Field as Input
from ...data.outputs import OutputForm
from ..parts import Shapes, size

if TYPE_CHECKING:
    from .network import OwnServerNetwork, ServerNetwork

Count = Annotated[int, Field(ge=1)]


class ServerModel(Config):
    """A network at the server over the parties' messages: theta_0 of VAFL.

    Without it the parties send logits, which are added up (V-13). With it they send
    vectors, which the server combines; then come fully connected layers, ReLU between
    them, and a last one to the logits.

    Source: VAFL, equation 1 and appendix G; V-26, V-27, F-29.
    """

    width: Count
    """Numbers that a party sends of a sample, or of each of its views."""
    views: Count = 1
    """Views of a party: its columns are this number of equal rows, and its network
    is applied to each of them, with the same weights."""
    combine: Literal["sum", "weighted_sum", "concat"] = "concat"
    """`weighted_sum`: each view of each party has one learned factor (V-26); `concat`
    lays all vectors end to end."""
    hidden: tuple[Count, ...] = ()
    """Units of each hidden layer; without any, one layer gives the logits."""
    build: FunctionName | None = None
    """A JAX model of your own in place of `combine` and `hidden`: `"module:function"`,
    as in `problem.model.build`. Its rows are the parties' messages for a sample,
    `[parties, width]`, or of several views `[parties, views, width]`."""

    @model_validator(mode="after")
    def _one_network(self) -> "ServerModel":
        if self.build is not None and (self.combine != "concat" or self.hidden):
            raise ValueError(
                "must have no combine and no hidden with build, which takes their "
                "place; remove them"
            )
        return self

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
        """
        sizes = self.sizes(num_parties, num_outputs)
        layers = pairwise(sizes)
        dense = [shape for inp, out in layers for shape in ((out, inp), (out,))]
        weighted = self.combine == "weighted_sum"
        factors = [(num_parties * self.views,)] if weighted else []
        return (*factors, *dense)

    def num_weights(self, num_parties: int, form: OutputForm) -> int:
        """Returns the number of weights, factors and biases included.

        Raises:
            ScenarioError: The model of the user's own cannot be used here.
        """
        if self.build is None:
            return size(self.shapes(num_parties, form.num_outputs))
        return self.make(num_parties, form).num_weights

    def make(
        self, num_parties: int, form: OutputForm
    ) -> "ServerNetwork | OwnServerNetwork":
        """Returns the network over the parties' messages.

        Raises:
            ScenarioError: The model of the user's own cannot be used here.
        """
        from .network import ServerNetwork, own_network

        if self.build is None:
            return ServerNetwork(self, num_parties, form.num_outputs)
        views = (self.views,) if self.views > 1 else ()
        sent = Input("", (num_parties, *views, self.width))
        return own_network(UserFunction(self.build, "problem.server.build"), form, sent)
