"""What becomes of a server's step before it is made: optimisers, and step sizes."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...learning.horizontal import HorizontalProblem
from ...timeline import Kind
from ..optimizers import rule as optimizing
from ..optimizers.base import UpdateRule
from .stages import AdjustStage, ServerRow, Step


class Optimise(AdjustStage):
    """Takes the direction that an optimiser makes of the aggregate.

    Attributes:
        rule: The optimiser.
    """

    rule: UpdateRule

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        """Returns the state of the optimiser."""
        return optimizing.start(self.rule, problem, weights)

    def scaled(self, step_size: Array, version: Int[Array, ""]) -> Array:
        """Returns the step size times the learning rate."""
        return self.rule.scaled(step_size, version)

    def ahead(
        self, weights: Float[Array, "..."], state: Any, step_size: Array
    ) -> Float[Array, "..."]:
        """Returns where the optimiser leads the model."""
        return self.rule.ahead(weights, state, step_size)

    def __call__(self, row: ServerRow, step: Step, state: Any) -> tuple[Step, Any]:
        """Returns the step in the optimiser's direction."""
        direction, state = optimizing.directed(
            *(self.rule, row.problem, step.direction, state),
            *(row.weights, row.event.version, step.applies),
        )
        return step._replace(direction=direction), state


class ScaleByWeight(AdjustStage):
    """Multiplies the step, in place of the direction, by the mean staleness weight.

    For optimisers that are not linear: they would undo the factor of a direction.
    """

    def __call__(self, row: ServerRow, step: Step, state: Any) -> tuple[Step, Any]:
        """Returns the step with its direction unweighted."""
        del row
        weight = step.weight.astype(step.direction.dtype)
        direction = step.direction / jnp.where(weight > 0, weight, 1)
        step_size = step.step_size * weight
        return step._replace(direction=direction, step_size=step_size), state


class LimitByStaleness(AdjustStage):
    """Limits the step size to 1 / tau if tau, the largest staleness, is beyond tau_c.

    tau is over all contributions since the last commit.

    Attributes:
        threshold: tau_c.

    Source: Wang et al., FADAS (2024), as methods.md, section 12, has it.
    """

    threshold: Float[Array, ""]

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Array:
        """Returns the largest staleness of an empty buffer."""
        del problem, weights
        return jnp.int32(0)

    def __call__(
        self, row: ServerRow, step: Step, state: Int[Array, ""]
    ) -> tuple[Step, Int[Array, ""]]:
        """Returns the step, and the largest staleness since the last commit."""
        event, rate = row.event, step.rate
        here = jnp.where(event.present(), event.staleness, 0).max()
        oldest = jnp.maximum(state, here).astype(jnp.int32)
        tau = oldest.astype(rate.dtype)
        most = 1 / jnp.maximum(tau * rate, 1e-30)
        share = jnp.where(tau <= self.threshold, 1, jnp.minimum(1, most))
        share = share.astype(rate.dtype)
        after = jnp.where(event.kind == Kind.COMMIT, 0, oldest).astype(jnp.int32)
        step_size = share * step.step_size
        return step._replace(step_size=step_size, rate=share * rate), after
