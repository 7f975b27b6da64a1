"""The objective that VAFL's noise smooths: F averaged over the noise of the parties."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from ....problem import losses
from ....problem.vertical import Model, VerticalProblem
from .noise import Draw, EmbeddingNoise, perturbed

EVALUATIONS = 1
"""Part of the key of all noise that evaluations draw from; jobs use the key itself."""
DRAWS = 16
"""Noise draws per estimate."""


def gradient_norm_squared(
    problem: VerticalProblem, model: Model, noise: EmbeddingNoise, key: Key[Array, ""]
) -> Float[Array, ""]:
    """Estimates the squared norm of the gradient of F_c without bias.

    F_c is F's mean over the noise. The product of two gradients at independent noise
    has the mean |grad F_c|^2; the mean of it over all pairs of `DRAWS` gradients is
    taken. Near zero it may be negative.

    Args:
        problem: The problem; all training samples are used.
        model: Weights of the parties and of the server.
        noise: Noise of the parties' networks.
        key: Key of all noise. Evaluations of a run share their noise.

    Source: VAFL, equations 10 to 13 and Theorem 5.
    """
    own = jax.random.fold_in(key, EVALUATIONS)

    def gradient(turn: Int[Array, ""]) -> Model:
        return jax.grad(partial(_objective, problem, noise, own, turn))(model)

    of_turns = jax.lax.map(gradient, jnp.arange(DRAWS, dtype=jnp.int32))
    # Twice the sum over pairs is the square of the sum without the sum of squares.
    twice = sum(
        jnp.sum(turns.sum(axis=0) ** 2) - jnp.sum(turns**2)
        for turns in jax.tree.leaves(of_turns)
    )
    return jnp.asarray(twice / (DRAWS * (DRAWS - 1)))


def _objective(
    problem: VerticalProblem,
    noise: EmbeddingNoise,
    key: Key[Array, ""],
    turn: Int[Array, ""],
    model: Model,
) -> Float[Array, ""]:
    weights, server = model
    M, N = problem.num_parties, problem.num_samples
    std = noise.std(jax.lax.stop_gradient(weights))
    of = Draw(
        weights=weights,
        worker=jnp.arange(M, dtype=jnp.int32),
        job=jnp.full(M, turn),
        samples=jnp.broadcast_to(jnp.arange(N, dtype=jnp.int32), (M, N)),
        std=std,
    )
    h = jax.vmap(partial(perturbed, problem.embedding, key, noise))(problem.x, of)
    found = losses.per_sample(problem.loss, problem.head(server, h), problem.y).mean()
    return found + 0.5 * problem.l2 * jnp.sum(weights**2)
