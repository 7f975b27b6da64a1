"""Clipping around what the server has learned so far."""

from typing import Annotated, Any, Literal

from pydantic import Field

from ..parts import Count
from .base import RobustPart


class CentredClipping(RobustPart):
    """v + rate times the mean of all x - v, each clipped to a radius; v was the last.

    With rate 1 it is that of rounds. With 1 - beta and one contribution a commit v is
    the server's momentum, of which no message moves more than (1 - beta) radius: ours,
    next to THROTTLE's (2026), whose centre stays the same in a round.

    Source: Karimireddy, He and Jaggi, Learning from History for Byzantine Robust
    Optimization (2021), Algorithm 2, equation (CC).
    """

    kind: Literal["centred_clipping"] = "centred_clipping"
    radius: Annotated[float, Field(gt=0)]
    """tau, the largest distance from v that counts."""
    iterations: Count = 1
    """Times that v moves in a commit."""
    rate: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Part of the clipped mean that v moves by."""

    @property
    def least(self) -> int:
        """One, of which no more than the radius counts."""
        return 1

    def start(self, problem: Any, weights: Any) -> Any:
        """Returns v: zero."""
        import jax.numpy as jnp  # only where a run needs it

        del problem
        return jnp.zeros_like(weights)

    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns v twice, after it has moved."""
        import jax.numpy as jnp  # only where a run needs it

        share = (there / jnp.maximum(there.sum(), 1)).astype(state.dtype)
        for _ in range(self.iterations):
            apart = vectors - state[None]
            length = jnp.maximum(jnp.linalg.norm(apart, axis=1), 1e-30)
            kept = share * jnp.minimum(1, self.radius / length)
            state = state + self.rate * jnp.tensordot(
                kept.astype(state.dtype), apart, 1
            )
        return state, state
