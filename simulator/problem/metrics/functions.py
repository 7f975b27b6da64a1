"""The functions of this package's metrics. With JAX: a record names them as text."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num, PyTree

from .. import losses
from ..numerics import DeviceProblem

COUNTABLE = 92_681
"""Largest number of scores for which twice the pairs stay below 2**32."""


def accuracy(
    outputs: Float[Array, " S *C"], targets: Num[Array, " S *T"]
) -> Float[Array, ""]:
    """Returns the fraction of correct targets.

    The largest of a row's outputs predicts its class; with as many outputs as targets,
    the sign of an output predicts one of two classes.
    """
    if outputs.shape == targets.shape:
        right = (outputs > 0) == (targets == 1)
    else:
        right = outputs.argmax(axis=-1) == targets.reshape(outputs.shape[:-1])
    return jnp.mean(right, dtype=outputs.dtype)


def accuracy_by_label(
    outputs: Float[Array, " S *C"], targets: Num[Array, " S *T"]
) -> Float[Array, " C"]:
    """Returns the fraction of each label's correct targets, as in `accuracy`.

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


def auc(scores: Float[Array, " S"], labels: Num[Array, " S"]) -> Float[Array, ""]:
    """Returns the fraction of pairs in which a positive sample scores above a negative.

    Ties count one half, as the Mann-Whitney statistic has it. Pairs are counted in
    integers, so the result is exact but for one division; beyond `COUNTABLE` scores,
    means over the positive samples are taken instead, exact to rounding.

    Args:
        scores: Scores of the samples; larger means more likely positive.
        labels: Class of each sample, 1 positive, 0 negative.

    Returns:
        In [0, 1]; NaN where one of the classes has no sample, or a score is NaN.

    Source: Hanley and McNeil, The meaning and use of the area under a receiver
    operating characteristic (ROC) curve (1982).
    """
    positive = labels == 1
    # Negative samples sort to the front, in the order of their scores.
    negatives = jnp.sort(jnp.where(positive, jnp.inf, scores))
    below = jnp.searchsorted(negatives, scores, side="left")
    not_above = jnp.searchsorted(negatives, scores, side="right")
    num_positive = positive.sum()
    num_negative = scores.shape[0] - num_positive
    # An infinite score must not tie with the infinities behind the negative samples.
    twice = jnp.where(positive, below + jnp.minimum(not_above, num_negative), 0)
    unknown = jnp.where(jnp.isnan(scores).any(), jnp.nan, 0).astype(scores.dtype)
    if scores.shape[0] <= COUNTABLE:
        wins = twice.astype(jnp.uint32).sum(dtype=jnp.uint32).astype(scores.dtype)
        pairs = num_positive.astype(jnp.uint32) * num_negative.astype(jnp.uint32)
        return wins / (2 * pairs).astype(scores.dtype) + unknown
    share = twice.astype(scores.dtype) / (2 * num_negative)
    return share.sum() / num_positive + unknown


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


def loss(problem: DeviceProblem, model: PyTree, logits: PyTree) -> Float[Array, ""]:
    """Returns the mean loss of the test rows; of cross-entropies in nats."""
    return losses.per_sample(problem.loss, logits, problem.y_test).mean()


def perplexity(
    problem: DeviceProblem, model: PyTree, logits: PyTree
) -> Float[Array, ""]:
    """Returns the exponential of the mean loss of the test rows.

    A model that gives each of n classes the chance 1 / n has a perplexity of n.
    """
    return jnp.exp(loss(problem, model, logits))


def objective(
    problem: DeviceProblem, model: PyTree, logits: PyTree
) -> Float[Array, ""]:
    """Returns the regularised objective on all training rows, in nats."""
    return problem.objective(model)


def gradient_norm_squared(
    problem: DeviceProblem, model: PyTree, logits: PyTree
) -> Float[Array, ""]:
    """Returns the squared Euclidean norm of the objective's gradient."""
    slopes = jax.tree.leaves(jax.grad(problem.objective)(model))
    return jnp.asarray(sum(jnp.sum(slope**2) for slope in slopes))


def optimality_gap(
    problem: DeviceProblem, model: PyTree, logits: PyTree
) -> Float[Array, ""]:
    """Returns the objective minus its least value, in nats."""
    return problem.objective(model) - problem.minimum
