"""The arrays in the flat vectors that optimisers move."""

from typing import Any, NamedTuple

from ...config.errors import ScenarioError
from ...learning.horizontal import HorizontalProblem
from ...learning.vertical import VerticalProblem
from ...models.hidden import hidden
from ...models.parts import Shapes

NO_HIDDEN = (
    "algorithm's optimizer must be another for a model without hidden matrices, those "
    "between its first and its last layer, got 'muon', which would be AdamW alone; "
    "take adamw, a deeper model, or matrices: all"
)
"""The message on a model of which Muon would move nothing."""


class ModelArrays(NamedTuple):
    """The arrays in a flat vector of weights.

    Attributes:
        shapes: Their shapes; None of a model that does not say them.
        model: The model; None of numbers without one, such as biases.
        rows: Shape of what it takes, the batch's axis being -1.
        whole: Whether the model is all that the optimiser moves.
    """

    shapes: Shapes | None
    model: Any = None
    rows: tuple[int, ...] = ()
    whole: bool = True

    @property
    def inputs_first(self) -> bool:
        """Whether matrices are `[inputs, outputs]`, which the model's library says."""
        return getattr(_innermost(self.model), "inputs_first", False)

    def hidden(self) -> tuple[bool, ...]:
        """Says of each array whether it is a hidden matrix.

        Raises:
            ScenarioError: None is, of a model that is all there is.
        """
        if self.shapes is None:
            return ()
        if self.model is None:
            return (False,) * len(self.shapes)
        found = hidden(self.model, self.shapes, self.rows)
        if self.whole and not any(found):
            raise ScenarioError(NO_HIDDEN)
        return found


def shapes_of(model: Any) -> Shapes | None:
    """Returns the shapes of a model's arrays, in the order of its layers."""
    return getattr(_innermost(model), "shapes", None)


def arrays_of(model: Any, rows: tuple[int, ...], *, whole: bool = True) -> ModelArrays:
    """Returns the arrays of a model, of one's own in the order of its tree's leaves.

    Args:
        model: The model.
        rows: Shape of what it takes, the batch's axis being -1.
        whole: Whether it is all that the optimiser moves.
    """
    own = getattr(_innermost(model), "leaf_shapes", None)
    return ModelArrays(shapes_of(model) or own, model, rows, whole)


def arrays_of_rows(problem: HorizontalProblem) -> ModelArrays:
    """Returns the arrays of the model of a problem whose clients hold rows."""
    return arrays_of(problem.model, (-1, problem.x.shape[1]))


def arrays_of_party(problem: VerticalProblem) -> ModelArrays:
    """Returns the arrays of a party's model."""
    return arrays_of(problem.embedding, (-1, problem.x.shape[-1]))


def arrays_of_server(problem: VerticalProblem) -> ModelArrays:
    """Returns the arrays of the server's network, or its biases, which are one."""
    if problem.server is None:
        return ModelArrays(((problem.num_outputs,),))
    sent = (problem.num_parties, problem.embedding.num_outputs, -1)
    return arrays_of(problem.server, sent, whole=False)


def _innermost(model: Any) -> Any:
    """Returns the network within what stands around it, as a party's views do."""
    while hasattr(model, "network"):
        model = model.network
    return model
