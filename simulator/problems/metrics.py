"""Metrics of a model on the device: one function each, as `simulator.metrics` names.

Each gets the problem, the model as the problem's objective takes it, and the logits of
the test rows.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from simulator.metrics import metric
from simulator.problems import losses
from simulator.problems.auc import auc

Logits = Float[Array, "C N_test"]
Number = Float[Array, ""]


def measure(
    problem: Any, model: Any, logits: Logits, metrics: tuple[str, ...]
) -> dict[str, Array]:
    """Returns metrics of a model, by name.

    Args:
        problem: Problem with test labels, a loss and an objective.
        model: Model as the problem's objective takes it.
        logits: Logits of the test rows.
        metrics: Names of the metrics.
    """
    return {name: metric(name).function()(problem, model, logits) for name in metrics}


def accuracy(problem: Any, model: Any, logits: Logits) -> Number:
    """Returns the fraction of test rows whose class is found."""
    del model
    return jnp.mean(losses.correct(logits, problem.y_test), dtype=logits.dtype)


def loss(problem: Any, model: Any, logits: Logits) -> Number:
    """Returns the mean loss of the test rows, in nats."""
    del model
    return losses.per_sample(problem.loss, logits, problem.y_test).mean()


def perplexity(problem: Any, model: Any, logits: Logits) -> Number:
    """Returns the exponential of the mean loss of the test rows.

    A model that gives each of n classes the chance 1 / n has a perplexity of n.
    """
    return jnp.exp(loss(problem, model, logits))


def area_under_roc_curve(problem: Any, model: Any, logits: Logits) -> Number:
    """Returns the area under the ROC curve of the test rows, of two classes."""
    del model
    # Two logits differ by the log odds, one is the log odds.
    scores = logits[-1] - logits[0] * (len(logits) > 1)
    return auc(scores, problem.y_test)


def objective(problem: Any, model: Any, logits: Logits) -> Number:
    """Returns the regularised objective on all training rows, in nats."""
    del logits
    return problem.objective(model)


def gradient_norm_squared(problem: Any, model: Any, logits: Logits) -> Number:
    """Returns the squared Euclidean norm of the objective's gradient."""
    del logits
    slopes = jax.tree.leaves(jax.grad(problem.objective)(model))
    return jnp.asarray(sum(jnp.sum(slope**2) for slope in slopes))


def optimality_gap(problem: Any, model: Any, logits: Logits) -> Number:
    """Returns the objective minus its least value, in nats."""
    del logits
    return problem.objective(model) - problem.minimum
