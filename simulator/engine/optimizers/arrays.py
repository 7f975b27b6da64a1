"""The arrays in the flat vectors that optimisers move, and the base of every rule."""

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float, Int, PyTree

from ...parts.errors import ScenarioError
from ...problem.horizontal import HorizontalProblem
from ...problem.models.parts import Shapes, between
from ...problem.vertical import VerticalProblem

NO_HIDDEN = (
    "algorithm's optimizer must be another for a model without hidden matrices, those "
    "between its first and its last layer, got 'muon', which would be AdamW alone; "
    "take adamw, a deeper model, or matrices: all"
)
"""The message on a model of which Muon would move nothing."""
Vector = Float[Array, "..."]
"""An array of weights or a gradient, or a flat vector of some."""
OWN = (
    "algorithm's optimizer.matrices must be all for a custom model, whose hidden "
    "matrices are unknown, got 'hidden'; write matrices: all"
)


class ModelArrays(NamedTuple):
    """The arrays in a flat vector of weights.

    Attributes:
        shapes: Their shapes; None for a model without a description of them.
        model: The model; None of numbers without one, such as biases.
        whole: Whether the model is all that the optimiser moves.
    """

    shapes: Shapes | None
    model: Any = None
    whole: bool = True

    @property
    def inputs_first(self) -> bool:
        """Whether matrices are `[inputs, outputs]`, by the model's library."""
        return getattr(_innermost(self.model), "inputs_first", False)

    def hidden(self) -> tuple[bool, ...]:
        """Returns whether each array is a hidden matrix.

        Raises:
            ScenarioError: A whole model has none, or a custom model does not describe
                its arrays.
        """
        if self.shapes is None:
            return ()
        if self.model is None:
            return (False,) * len(self.shapes)
        network = _innermost(self.model)
        if hasattr(network, "leaf_shapes"):
            raise ScenarioError(OWN)
        found = getattr(network, "hidden_matrices", None) or between(self.shapes)
        if self.whole and not any(found):
            raise ScenarioError(NO_HIDDEN)
        return found


def shapes_of(model: Any) -> Shapes | None:
    """Returns the shapes of a model's arrays, in the order of its layers."""
    return getattr(_innermost(model), "shapes", None)


def arrays_of(model: Any, *, whole: bool = True) -> ModelArrays:
    """Returns the arrays of a model, of one's own in the order of its tree's leaves.

    Args:
        model: The model.
        whole: Whether it is all that the optimiser moves.
    """
    own = getattr(_innermost(model), "leaf_shapes", None)
    return ModelArrays(shapes_of(model) or own, model, whole)


def arrays_of_rows(problem: HorizontalProblem) -> ModelArrays:
    """Returns the arrays of the model of a horizontal problem."""
    return arrays_of(problem.model)


def arrays_of_party(problem: VerticalProblem) -> ModelArrays:
    """Returns the arrays of a party's model."""
    return arrays_of(problem.embedding)


def arrays_of_server(problem: VerticalProblem) -> ModelArrays:
    """Returns the arrays of the server's network, or its biases, which are one."""
    if problem.server is None:
        return ModelArrays(((problem.num_outputs,),))
    return arrays_of(problem.server, whole=False)


def _innermost(model: Any) -> Any:
    """Returns the network within what stands around it, as a party's views do."""
    while hasattr(model, "network"):
        model = model.network
    return model


class UpdateRule(eqx.Module):
    """Makes a direction of a gradient, to be multiplied by a step size."""

    def scaled(self, step_size: Array, count: Int[Array, "*W"]) -> Array:
        """Returns the step size of an update: its argument.

        Args:
            step_size: Factor of the direction.
            count: Updates that were made.
        """
        return step_size

    @abstractmethod
    def init(self, weights: Vector, arrays: ModelArrays | None) -> PyTree:
        """Returns the state before the first update of some weights.

        Args:
            weights: An array, or a flat vector of some.
            arrays: Arrays in the vector, if they are known.
        """

    @abstractmethod
    def update(
        self,
        gradient: Vector,
        state: PyTree,
        weights: Vector,
        count: Int[Array, ""],
        arrays: ModelArrays | None,
    ) -> tuple[Vector, PyTree]:
        """Returns the direction against which weights move, and the state after it.

        Args:
            gradient: Gradient, as large as the weights; for a server, the model that a
                client read minus its trained one.
            state: State before.
            weights: Weights that it moves.
            count: Updates that were made.
            arrays: As in `init`.
        """

    def ahead(
        self, weights: Vector, state: PyTree, step_size: Float[Array, ""]
    ) -> Vector:
        """Returns the vector that clients read: the model, or its look-ahead."""
        return weights
