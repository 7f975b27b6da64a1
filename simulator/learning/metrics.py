"""Metrics of a model on the device: one function each, as `simulator.metrics` names.

Each gets outputs and targets of the test rows, rows first; or the problem, the model as
the problem's objective takes it, and the outputs, as the record says (`Metric.takes`).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from ..metrics import Takes, metric
from . import losses
from .auc import auc

Number = Float[Array, ""]


def measure(
    problem: Any, model: Any, logits: Any, metrics: tuple[str, ...]
) -> dict[str, Array]:
    """Returns metrics of a model, by name.

    Args:
        problem: Problem with test targets, a loss and an objective.
        model: Model as the problem's objective takes it.
        logits: Outputs of the test rows, as the problem's model gives them.
        metrics: Names of the metrics.
    """
    found = {}
    for name in metrics:
        record = metric(name)
        if record.takes is Takes.OUTPUTS:
            outputs = losses.rows_first(problem.loss, logits)
            found[name] = record.function()(outputs, problem.y_test)
        else:
            found[name] = record.function()(problem, model, logits)
    return found


def accuracy(
    outputs: Float[Array, " S *C"], targets: Num[Array, " S *T"]
) -> Float[Array, ""]:
    """Returns the fraction of targets that are found.

    A class is found by the largest of its row's outputs; one of two classes by the sign
    of its output, where there are as many outputs as targets.
    """
    if outputs.shape == targets.shape:
        right = (outputs > 0) == (targets == 1)
    else:
        right = outputs.argmax(axis=-1) == targets.reshape(outputs.shape[:-1])
    return jnp.mean(right, dtype=outputs.dtype)


def accuracy_by_label(
    outputs: Float[Array, " S *C"], targets: Num[Array, " S *T"]
) -> Float[Array, " C"]:
    """Returns the fraction of each label's targets that are found, as in `accuracy`.

    NaN for a label that no target has.
    """
    if outputs.shape == targets.shape:
        right, labels, count = (outputs > 0) == (targets == 1), targets, 2
    else:
        labels = targets.reshape(outputs.shape[:-1])
        right, count = outputs.argmax(axis=-1) == labels, outputs.shape[-1]
    of_label = jax.nn.one_hot(labels.reshape(-1), count, dtype=outputs.dtype)
    total = of_label.sum(axis=0)
    found = jnp.tensordot(right.reshape(-1).astype(outputs.dtype), of_label, 1)
    return jnp.where(total > 0, found / jnp.maximum(total, 1), jnp.nan)


def loss(problem: Any, model: Any, logits: Any) -> Number:
    """Returns the mean loss of the test rows; of cross-entropies in nats."""
    del model
    return losses.per_sample(problem.loss, logits, problem.y_test).mean()


def perplexity(problem: Any, model: Any, logits: Any) -> Number:
    """Returns the exponential of the mean loss of the test rows.

    A model that gives each of n classes the chance 1 / n has a perplexity of n.
    """
    return jnp.exp(loss(problem, model, logits))


def expected_reward(problem: Any, model: Any, logits: Any) -> Number:
    """Returns the mean chance of the right class, or answer, of the test rows.

    That of an answer is the product of the chances of its tokens, each given the prompt
    and the right tokens before it.
    """
    del model
    each = losses.per_sample(problem.loss, logits, problem.y_test)
    if length := getattr(problem, "answer", 0):
        each = each.reshape(len(problem.x_test), -1)[:, -length:].sum(axis=1)
    return jnp.exp(-each).mean()


def area_under_roc_curve(
    outputs: Float[Array, " S *C"], targets: Num[Array, " S *T"]
) -> Float[Array, ""]:
    """Returns the area under the ROC curve of the test rows, of two classes.

    Of several positions or labels of a row all are taken together.
    """
    if outputs.shape == targets.shape:
        scores = outputs
    else:  # two logits differ by the log odds
        scores = outputs[..., -1] - outputs[..., 0] * (outputs.shape[-1] > 1)
    return auc(scores.reshape(-1), targets.reshape(-1))


def objective(problem: Any, model: Any, logits: Any) -> Number:
    """Returns the regularised objective on all training rows, in nats."""
    del logits
    return problem.objective(model)


def gradient_norm_squared(problem: Any, model: Any, logits: Any) -> Number:
    """Returns the squared Euclidean norm of the objective's gradient."""
    del logits
    slopes = jax.tree.leaves(jax.grad(problem.objective)(model))
    return jnp.asarray(sum(jnp.sum(slope**2) for slope in slopes))


def optimality_gap(problem: Any, model: Any, logits: Any) -> Number:
    """Returns the objective minus its least value, in nats."""
    del logits
    return problem.objective(model) - problem.minimum
