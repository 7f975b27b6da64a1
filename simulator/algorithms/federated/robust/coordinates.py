"""Coordinate by coordinate: the median, and the mean of what is not trimmed."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .base import RobustPart


class TrimmedMean(RobustPart):
    """The mean of what is left, in each coordinate, without its f largest and smallest.

    Source: Yin et al., Byzantine-Robust Distributed Learning: Towards Optimal
    Statistical Rates (2018), Definition 2, with beta n = f.
    """

    kind: Literal["trimmed_mean"] = "trimmed_mean"
    tolerated: Annotated[int, Field(ge=0)]
    """f, enemies among the contributions of a commit, or among buckets."""

    @property
    def least(self) -> int:
        """More than are trimmed."""
        return 2 * self.tolerated + 1

    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns the trimmed mean of each coordinate."""
        import jax.numpy as jnp  # only where a run needs it

        ranked = jnp.sort(jnp.where(there[:, None], vectors, jnp.inf), axis=0)
        rank, number = jnp.arange(there.size), there.sum()
        inner = (rank >= self.tolerated) & (rank < number - self.tolerated)
        total = jnp.where(inner[:, None], ranked, 0).sum(axis=0)
        return total / jnp.maximum(inner.sum(), 1).astype(total.dtype), state


class CoordinateMedian(RobustPart):
    """The median of each coordinate, of an even number the mean of the middle two.

    Source: Yin et al. (2018), Definition 1.
    """

    kind: Literal["coordinate_median"] = "coordinate_median"

    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns the median of each coordinate."""
        return median_of(vectors, there), state


def median_of(vectors: Any, there: Any) -> Any:
    """Returns the median of each coordinate `[D]` of the vectors that are there."""
    import jax.numpy as jnp  # only where a run needs it

    ranked = jnp.sort(jnp.where(there[:, None], vectors, jnp.inf), axis=0)
    number = jnp.maximum(there.sum(), 1)
    return (ranked[(number - 1) // 2] + ranked[number // 2]) / 2
