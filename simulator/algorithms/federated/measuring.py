"""What is measured of contributions as they arrive; nothing is changed."""

from typing import Any, ClassVar, Literal

from .chain import ReceivePart


class EffectiveSize(ReceivePart):
    """Measures how many contributions of equal weight a commit's are worth.

    The diagnostic `effective_contributions` is (sum w)^2 / sum w^2 over the weights of
    a commit's contributions: their number where all weigh alike, near 1 where one has
    nearly all. Where the protocol gathers contributions, it is of those so far.

    Source: Kish, Survey Sampling (1965), section 11.7: effective sample size.
    """

    kind: Literal["effective_size"] = "effective_size"
    takes_sums: ClassVar[bool] = True
    keeps_bound: ClassVar[bool] = True

    def start(self, problem: Any, weights: Any) -> Any:
        import jax.numpy as jnp  # only where a run needs it

        return jnp.zeros(2, weights.dtype)

    def __call__(self, row: Any, contributions: Any, state: Any) -> tuple[Any, Any]:
        """Returns the contributions, and the sums, of nothing after a COMMIT."""
        import jax.numpy as jnp  # only where a run needs it

        from ...timeline import Kind

        weight = contributions.weight.astype(state.dtype)
        sums = state + jnp.stack([weight.sum(), (weight**2).sum()])
        size = sums[0] ** 2 / jnp.where(sums[1] > 0, sums[1], 1)
        info = contributions.info | {"effective_contributions": size}
        after = jnp.where(row.event.kind == Kind.COMMIT, 0, sums)
        return contributions._replace(info=info), after


class Cosine(ReceivePart):
    """Measures the angle between successive contributions.

    The diagnostic `contribution_cosine` is the cosine of a row's contribution, or the
    weighted sum of its several, and of the row before it that had one: above 0 they
    pull in one direction, below it against each other. NaN of the first, and where
    either is 0. The server keeps one more vector of the model's size.
    """

    kind: Literal["cosine"] = "cosine"
    takes_sums: ClassVar[bool] = True
    keeps_bound: ClassVar[bool] = True

    def start(self, problem: Any, weights: Any) -> Any:
        """Returns the contribution before the first: none, zeros."""
        import jax.numpy as jnp  # only where a run needs it

        return jnp.zeros_like(weights)

    def __call__(self, row: Any, contributions: Any, state: Any) -> tuple[Any, Any]:
        """Returns the contributions, and the row's sum."""
        import jax.numpy as jnp  # only where a run needs it

        from ..base import norm
        from .aggregation import summed

        # Of moves the scale is positive, and no cosine depends on it.
        total, mass = summed(contributions._replace(scale=None))
        norms = norm(total) * norm(state)
        dot = jnp.vdot(total, state).astype(norms.dtype)
        cosine = jnp.where(norms > 0, dot / jnp.where(norms > 0, norms, 1), jnp.nan)
        info = contributions.info | {"contribution_cosine": cosine}
        return contributions._replace(info=info), jnp.where(mass > 0, total, state)
