"""What becomes of a server's step before it is made: optimisers."""

from typing import Any

from jaxtyping import Array, Float, Int

from ...learning.horizontal import HorizontalProblem
from ..optimizers import rule as optimizing
from ..optimizers.base import UpdateRule
from .stages import ServerRow, Step, StepStage


class Optimising(StepStage):
    """Takes the direction that an optimiser makes of the aggregate.

    Attributes:
        rule: The optimiser.
    """

    rule: UpdateRule

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        return optimizing.start(self.rule, problem, weights)

    def scaled(self, step_size: Array, version: Int[Array, ""]) -> Array:
        return self.rule.scaled(step_size, version)

    def ahead(
        self, weights: Float[Array, "..."], state: Any, step_size: Array
    ) -> Float[Array, "..."]:
        return self.rule.ahead(weights, state, step_size)

    def __call__(self, row: ServerRow, step: Step, state: Any) -> tuple[Step, Any]:
        """Returns the step in the optimiser's direction."""
        direction, state = optimizing.directed(
            *(self.rule, row.problem, step.direction, state),
            *(row.weights, row.event.version, step.applies),
        )
        return step._replace(direction=direction), state
