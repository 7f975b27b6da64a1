"""The objective on all training rows, its gradient, and its distance from the least."""

from typing import Any

from jaxtyping import Float

from ...metrics import MINIMUM, OF_LOSS, Metric


def objective(problem: Any, model: Any, logits: Any) -> Float[Any, ""]:
    """Returns the regularised objective on all training rows, in nats."""
    return problem.objective(model)


def gradient_norm_squared(problem: Any, model: Any, logits: Any) -> Float[Any, ""]:
    """Returns the squared Euclidean norm of the objective's gradient."""
    import jax
    import jax.numpy as jnp

    del logits
    slopes = jax.tree.leaves(jax.grad(problem.objective)(model))
    return jnp.asarray(sum(jnp.sum(slope**2) for slope in slopes))


def optimality_gap(problem: Any, model: Any, logits: Any) -> Float[Any, ""]:
    """Returns the objective minus its least value, in nats."""
    return problem.objective(model) - problem.minimum


OBJECTIVE = Metric(
    "objective",
    f"{__name__}:objective",
    meaning="F on all training rows, regularised",
    label="Objective",
    unit=OF_LOSS,
)
GRADIENT_NORM_SQUARED = Metric(
    "gradient_norm_squared",
    f"{__name__}:gradient_norm_squared",
    meaning="squared norm of F's gradient",
    label="Squared norm of the gradient",
    logarithmic=True,
)
OPTIMALITY_GAP = Metric(
    "optimality_gap",
    f"{__name__}:optimality_gap",
    meaning="F minus its minimum",
    label="Optimality gap",
    unit=OF_LOSS,
    logarithmic=True,
    needs=(MINIMUM,),
)
