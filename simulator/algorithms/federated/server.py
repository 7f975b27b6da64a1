"""What becomes of the model: steps against an aggregate."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...learning.horizontal import HorizontalProblem
from ..base import Info
from .aggregation import placed
from .stages import (
    ChainStage,
    Contributions,
    ServerRow,
    Step,
    StepStage,
)


class Stepping(StepStage):
    """Steps against what contributions are aggregated to.

    Attributes:
        aggregation: Stage of contributions.
        adjusted: What becomes of a step before it is made, in this order; nothing for
            plain SGD.
    """

    aggregation: ChainStage
    adjusted: tuple[StepStage, ...] = ()

    @property
    def draws(self) -> bool:
        return any(stage.draws for stage in (self.aggregation, *self.adjusted))

    @property
    def takes_sums(self) -> bool:
        return self.aggregation.takes_sums

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        stages = (self.aggregation, *self.adjusted)
        return tuple(stage.start(problem, weights) for stage in stages)

    def scaled(self, step_size: Array, version: Int[Array, ""]) -> Array:
        for stage in self.adjusted:
            step_size = stage.scaled(step_size, version)
        return step_size

    def ahead(
        self, weights: Float[Array, "..."], state: Any, step_size: Array
    ) -> Float[Array, "..."]:
        """Returns what clients read: the model, or where an optimiser leads it."""
        for stage, own in zip(self.adjusted, state[1:], strict=True):
            weights = stage.ahead(weights, own, step_size)
        return weights

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Any
    ) -> tuple[Float[Array, "..."], Any, Info]:
        """Returns the model after the step, if it is made."""
        found, first, info = self.aggregation(row, contributions, state[0])
        direction, statistics, count = found.direction, None, row.num_statistics
        if count:  # statistics are means, not steps
            statistics = direction[-count:]
            direction = direction.at[-count:].set(0)
        step = Step(direction, row.step_size, row.rate, found.applies, found.weight)
        after = [first]
        for stage, own in zip(self.adjusted, state[1:], strict=True):
            step, own = stage(row, step, own)
            after.append(own)
        moved = row.weights - step.step_size * step.direction
        moved = placed(moved, statistics, jnp.int32(1))
        weights = jnp.where(step.applies, moved, row.weights)
        return weights, tuple(after), info | {"step_size": step.rate}
