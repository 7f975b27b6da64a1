"""Krum and multi-Krum: the contributions that are closest to their neighbours."""

from typing import Annotated, Any, Literal

from pydantic import Field

from ..parts import Count
from .base import RobustPart


class Krum(RobustPart):
    """The mean of the contributions with the smallest scores, by default of one.

    The score of one is the sum of its squared distances to the n - f - 2 closest others
    among n, which tolerates f enemies if n >= 2 f + 3. With several it is multi-Krum.

    Source: Blanchard et al., Machine Learning with Adversaries: Byzantine Tolerant
    Gradient Descent (2017), section 4 and Proposition 1; multi-Krum: section 5.
    """

    kind: Literal["krum"] = "krum"
    tolerated: Annotated[int, Field(ge=0)]
    """f, enemies among the contributions of a commit, or among buckets."""
    selected: Count = 1
    """m, contributions whose mean is taken."""

    @property
    def least(self) -> int:
        """N of which f enemies are tolerated."""
        return max(2 * self.tolerated + 3, self.selected)

    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns the mean of those with the smallest scores."""
        import jax  # only where a run needs it
        import jax.numpy as jnp

        size = there.size
        apart = jax.lax.map(
            lambda one: ((vectors - one[None]) ** 2).sum(axis=1), vectors
        )
        others = there[None, :] & ~jnp.eye(size, dtype=bool)
        ranked = jnp.sort(jnp.where(others, apart, jnp.inf), axis=1)
        near = jnp.arange(size) < there.sum() - self.tolerated - 2
        scores = jnp.where(near, ranked, 0).sum(axis=1)
        chosen = jnp.argsort(jnp.where(there, scores, jnp.inf))[: self.selected]
        return vectors[chosen].mean(axis=0), state
