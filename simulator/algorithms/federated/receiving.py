"""What becomes of contributions as they arrive: compensation, and moves."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...learning.horizontal import HorizontalProblem
from .stages import Contributions, ReceiveStage, ServerRow


class Compensate(ReceiveStage):
    """Adds lambda g * g * (now - read): first-order compensation of the delay.

    Attributes:
        strength: lambda_0.
        decay: m of the moving average of g * g, by whose root lambda_0 is divided; None
            where it is not.

    Source: Zheng et al., Asynchronous Stochastic Gradient Descent with Delay
    Compensation (2017), Algorithm 2 and DC-ASGD-a.
    """

    strength: Float[Array, ""]
    decay: Float[Array, ""] | None

    def start(self, problem: HorizontalProblem, weights: Float[Array, "..."]) -> Any:
        """Returns the moving average, if there is one."""
        del problem
        return None if self.decay is None else jnp.zeros_like(weights)

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Any
    ) -> tuple[Contributions, Any]:
        """Returns compensated contributions, and the average with this row's mean."""
        message, strength = contributions.message, self.strength
        squared = message**2
        if self.decay is not None:
            present = row.event.present()
            mean = jnp.tensordot(present.astype(squared.dtype), squared, 1)
            mean = mean / jnp.maximum(present.sum(), 1)
            after = self.decay * state + (1 - self.decay) * mean
            state = jnp.where(present.any(), after, state)
            strength = strength / jnp.sqrt(state + 1e-7)
        drift = row.weights[None] - contributions.read
        strength = jnp.broadcast_to(strength, drift.shape)
        message = message + strength * squared * drift
        return contributions._replace(message=message), state


class AsMoves(ReceiveStage):
    """Takes sums of gradients as what clients moved: times their local step size."""

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: Any
    ) -> tuple[Contributions, Any]:
        """Returns the contributions as moves."""
        return contributions._replace(scale=row.local_step_size), state
