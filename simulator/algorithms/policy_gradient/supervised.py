"""A supervised start: likelihood of the right classes or answers, before any reward."""

from typing import Any

import jax
from jaxtyping import Array, Float, Key

from ...learning.horizontal import HorizontalProblem
from .part import RATE, ROWS
from .policies import policy_of

OF_ROWS = 2**31 - 4
"""Number of the keys by which rows are drawn, each by its step's number."""


def started(
    problem: HorizontalProblem,
    weights: Float[Array, "..."],
    steps: int,
    key: Key[Array, ""],
) -> Float[Array, "..."]:
    """Returns weights after steps of Adam on the mean likelihood of right tokens.

    Args:
        problem: Training rows, drawn uniformly and independently, and their model.
        weights: Weights at the start.
        steps: Number of steps.
        key: Key of the run.
    """
    import optax  # 0.1 s: only where a run needs it

    policy, rule = policy_of(problem), optax.adam(RATE)
    updated: Any = rule.update
    own = jax.random.fold_in(key, OF_ROWS)

    def once(number: Array, carried: tuple[Array, Any]) -> tuple[Array, Any]:
        weights, state = carried
        drawing = jax.random.fold_in(own, number)
        rows = jax.random.randint(drawing, (ROWS,), 0, len(problem.x))
        x, right = problem.x[rows], policy.right(problem.y[rows])
        loss = jax.grad(lambda w: -policy.log_chance(w, x, right).mean())
        moved, state = updated(loss(weights), state)
        return weights + moved, state

    return jax.lax.fori_loop(0, steps, once, (weights, rule.init(weights)))[0]
