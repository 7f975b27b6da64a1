"""A JAX model of a user's own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from ....parts.errors import ScenarioError
from ....parts.functions import FunctionName, UserFunction
from ...data.base import Dataset, Field
from ...data.outputs import OutputForm
from ..parts import Model, ModelCounts

if TYPE_CHECKING:
    from .network import OwnNetwork


class Python(Model):
    """A JAX model of your own, as it is: functions, or a module of a library.

    It gets rows in their original shapes. Its weights are counted from the model, and
    so are the bytes of messages.
    """

    kind: Literal["python"] = "python"
    families: ClassVar[tuple[str, ...]] = ("horizontal", "vertical")
    shaped: ClassVar[bool] = True
    build: FunctionName
    """`"module:function"`, a function that returns the model: a pair of functions
    `init(key)` and `apply(weights, x)`, or an Equinox or Flax (linen or NNX) module.
    Its arguments may be `num_outputs`, `shape` (of a row, or of each input by name) and
    `key`, by these names. Or the model itself."""

    @property
    def activation_of_party(self) -> None:
        return

    @property
    def _named(self) -> UserFunction:
        return UserFunction(self.build, "problem.model.build")

    def counts(self, data: Dataset, form: OutputForm) -> ModelCounts:
        network = self.of_rows(data, form)
        return ModelCounts(
            network.num_weights, network.num_statistics, network.takes_key
        )

    def of_rows(self, data: Dataset, form: OutputForm) -> "OwnNetwork":
        from .network import python_network

        return python_network(self._named, form, data.inputs)

    def make(self, num_outputs: int, num_features: int, family: str) -> "OwnNetwork":
        from .network import python_network

        row = Field("", (num_features,))
        network = python_network(self._named, OutputForm("", num_outputs), (row,))
        if network.num_statistics or network.takes_key:
            what = "statistics of batches" if network.num_statistics else "dropout"
            raise ScenarioError(
                f"problem.model.build must be without {what} at a party, which embeds "
                f"its rows again and again, got {self.build!r}; leave it out"
            )
        return network

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return self.make(num_outputs, num_features, "vertical").num_weights

    def weights_of_parties(self, widths: Sequence[int], num_outputs: int) -> int:
        # All have the network of the widest.
        return len(widths) * self.num_weights(max(widths), num_outputs)
