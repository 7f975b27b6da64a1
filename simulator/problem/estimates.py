"""Constants of step-size rules, estimated at the initial model of a run.

They are measurements at one model on all training samples, not bounds.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from .horizontal import HorizontalProblem

BLOCK = 64
"""Number of samples whose gradients are in memory at once."""
ITERATIONS = 50
"""Iterations of the power method."""
MOST_ROWS = 1024
"""Largest number of training samples in the Hessian."""


class Estimates(NamedTuple):
    """Measured constants of a problem.

    Attributes:
        smoothness: Smoothness L, largest absolute eigenvalue of the objective's
            Hessian, on the first 1,024 samples.
        deviation: Deviation sigma, root of the mean squared distance of a sample's
            gradient from the mean gradient.
        bound: Bound G, largest norm of a sample's gradient.
    """

    smoothness: float
    deviation: float
    bound: float


def estimate(problem: HorizontalProblem, key: Key[Array, ""]) -> Estimates:
    """Measures the constants of a problem, the regulariser included.

    Args:
        problem: Problem that is divided by rows.
        key: Key of the run's initial weights.

    Source: the definitions of MAPA, section 1 (M-25).
    """
    weights = problem.start(key)
    shares = np.array_split(np.arange(problem.x.shape[0]), -(-len(problem.y) // BLOCK))
    moments = [_moments(problem, weights, jnp.asarray(share)) for share in shares]
    total = sum(first for first, _ in moments)
    norms = np.concatenate([np.asarray(norm) for _, norm in moments]).astype(np.float64)
    mean = np.asarray(total, np.float64) / norms.size
    variance = float(np.mean(norms**2) - np.sum(mean**2))
    return Estimates(
        smoothness=float(_largest_eigenvalue(problem, weights)),
        deviation=max(variance, 0.0) ** 0.5,
        bound=float(norms.max()),
    )


@eqx.filter_jit
def _moments(
    problem: HorizontalProblem, weights: Float[Array, "..."], rows: Array
) -> tuple[Float[Array, "..."], Float[Array, " S"]]:
    """Returns the sum of some samples' gradients, and the norm of each."""
    one = jnp.ones(1, bool)

    def gradient(x: Array, y: Array) -> Array:
        loss = jax.grad(problem.batch_loss)(weights, x[None], y[None], one)
        return loss + problem.penalised(weights)

    each = jax.vmap(gradient)(problem.x[rows], problem.y[rows])
    flat = each.reshape(each.shape[0], -1)
    return each.sum(axis=0), jnp.sqrt(jnp.sum(flat**2, axis=1))


@eqx.filter_jit
def _largest_eigenvalue(
    problem: HorizontalProblem, weights: Float[Array, "..."]
) -> Float[Array, ""]:
    x, y = problem.x[:MOST_ROWS], problem.y[:MOST_ROWS]
    present = jnp.ones(y.shape[:1], bool)

    def slope(weights: Array) -> Array:
        loss = jax.grad(problem.batch_loss)(weights, x, y, present)
        return loss + problem.penalised(weights)

    def times(vector: Array) -> Array:
        return jax.jvp(slope, (weights,), (vector,))[1]

    def once(_: Any, carried: tuple[Array, Array]) -> tuple[Array, Array]:
        vector, _ = carried
        image = times(vector)
        length = jnp.sqrt(jnp.sum(image**2))
        return image / jnp.maximum(length, jnp.finfo(image.dtype).tiny), length

    begin = jax.random.normal(jax.random.key(0), weights.shape, weights.dtype)
    begin = begin / jnp.sqrt(jnp.sum(begin**2))
    return jax.lax.fori_loop(0, ITERATIONS, once, (begin, jnp.zeros((), begin.dtype)))[
        1
    ]
