"""A model that is known by its weights alone."""

from typing import TYPE_CHECKING, ClassVar, Literal

from ....parts.functions import FunctionName, UserFunction
from ....problem.data.base import Dataset
from ....problem.data.outputs import OutputForm
from ....problem.models.parts import Model

if TYPE_CHECKING:
    from .network import VectorNetwork


class Vector(Model):
    """Weights of any model, which functions of your own train and measure.

    It has no outputs here: `problem.work` makes the gradients.
    """

    kind: Literal["vector"] = "vector"
    families: ClassVar[tuple[str, ...]] = ("horizontal",)
    shaped: ClassVar[bool] = True
    weights: FunctionName
    """Weights at the start: a vector, or a function of a seed that returns one. The
    seed, below 2**32, follows from the run's."""
    evaluate: FunctionName
    """A function of weights and test rows (`ids`, `x`, `y`) that returns metrics by
    name; those of `evaluate.metrics` are kept."""

    @property
    def measured_by(self) -> UserFunction:
        return UserFunction(self.evaluate, "problem.model.evaluate")

    def num_weights(self, num_features: int, num_outputs: int) -> int:
        return self._network.size

    def of_rows(self, data: Dataset, form: OutputForm) -> "VectorNetwork":
        return self._network

    @property
    def _network(self) -> "VectorNetwork":
        from .network import vector

        return vector(UserFunction(self.weights, "problem.model.weights"))
