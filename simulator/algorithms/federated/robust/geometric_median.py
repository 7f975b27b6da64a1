"""The point of the least sum of distances."""

from typing import Annotated, Any, Literal

from pydantic import Field

from ..parts import Count
from .base import RobustPart
from .coordinates import median_of


class GeometricMedian(RobustPart):
    """The point with the least sum of distances, by smoothed Weiszfeld iterations.

    Each is the mean with weights 1 / max(nu, distance from the point before). The first
    point is the median of each coordinate (ours), which enemies cannot move far.

    Source: Pillutla, Kakade and Harchaoui, Robust Aggregation for Federated Learning
    (2022), Algorithm 2.
    """

    kind: Literal["geometric_median"] = "geometric_median"
    iterations: Count = 8
    """Number of iterations."""
    smoothing: Annotated[float, Field(gt=0)] = 1e-6
    """nu."""

    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns the point after the iterations."""
        import jax  # only where a run needs it
        import jax.numpy as jnp

        def better(_: Any, point: Any) -> Any:
            distance = jnp.linalg.norm(vectors - point[None], axis=1)
            weight = there / jnp.maximum(self.smoothing, distance)
            weight = (weight / jnp.maximum(weight.sum(), 1e-30)).astype(point.dtype)
            return jnp.tensordot(weight, vectors, 1)

        start = jnp.where(there.any(), median_of(vectors, there), 0)
        return jax.lax.fori_loop(0, self.iterations, better, start), state
