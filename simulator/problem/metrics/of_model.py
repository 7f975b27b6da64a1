"""Accuracy, area under the ROC curve, loss and objective of a model."""

from typing import Any

from jaxtyping import Float, Num

from ...parts.metrics import (
    CLASSES,
    LIKELIHOOD,
    MINIMUM,
    OF_LOSS,
    TWO_CLASSES,
    Metric,
    Models,
    Takes,
)

COUNTABLE = 92_681
"""Largest number of scores for which twice the pairs stay below 2**32."""


def accuracy(
    outputs: Float[Any, " S *C"], targets: Num[Any, " S *T"]
) -> Float[Any, ""]:
    """Returns the fraction of targets that are found.

    A class is found by the largest of its row's outputs; one of two classes by the sign
    of its output, where there are as many outputs as targets.
    """
    import jax.numpy as jnp

    if outputs.shape == targets.shape:
        right = (outputs > 0) == (targets == 1)
    else:
        right = outputs.argmax(axis=-1) == targets.reshape(outputs.shape[:-1])
    return jnp.mean(right, dtype=outputs.dtype)


def auc(scores: Float[Any, " S"], labels: Num[Any, " S"]) -> Float[Any, ""]:
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
    import jax.numpy as jnp

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
    outputs: Float[Any, " S *C"], targets: Num[Any, " S *T"]
) -> Float[Any, ""]:
    """Returns the area under the ROC curve of the test rows, of two classes.

    Of several positions or labels of a row all are taken together.
    """
    if outputs.shape == targets.shape:
        scores = outputs
    else:  # two logits differ by the log odds
        scores = outputs[..., -1] - outputs[..., 0] * (outputs.shape[-1] > 1)
    return auc(scores.reshape(-1), targets.reshape(-1))


def loss(problem: Any, model: Any, logits: Any) -> Float[Any, ""]:
    """Returns the mean loss of the test rows; of cross-entropies in nats."""
    from .. import losses

    return losses.per_sample(problem.loss, logits, problem.y_test).mean()


def perplexity(problem: Any, model: Any, logits: Any) -> Float[Any, ""]:
    """Returns the exponential of the mean loss of the test rows.

    A model that gives each of n classes the chance 1 / n has a perplexity of n.
    """
    import jax.numpy as jnp

    return jnp.exp(loss(problem, model, logits))


def objective(problem: Any, model: Any, logits: Any) -> Float[Any, ""]:
    """Returns the regularised objective on all training rows, in nats."""
    return problem.objective(model)


def gradient_norm_squared(problem: Any, model: Any, logits: Any) -> Float[Any, ""]:
    """Returns the squared Euclidean norm of the objective's gradient."""
    import jax
    import jax.numpy as jnp

    slopes = jax.tree.leaves(jax.grad(problem.objective)(model))
    return jnp.asarray(sum(jnp.sum(slope**2) for slope in slopes))


def optimality_gap(problem: Any, model: Any, logits: Any) -> Float[Any, ""]:
    """Returns the objective minus its least value, in nats."""
    return problem.objective(model) - problem.minimum


TEST_ACCURACY = Metric(
    "test_accuracy",
    f"{__name__}:accuracy",
    meaning="of the test rows",
    label="Test accuracy",
    unit="fraction",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    takes=Takes.OUTPUTS,
    needs=(CLASSES,),
)
WORKER_ACCURACY = Metric(
    "worker_accuracy",
    f"{__name__}:accuracy",
    meaning="mean of the workers' own",
    unit="fraction",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    models=Models.EACH_WORKER,
    takes=Takes.OUTPUTS,
    needs=(CLASSES,),
)
TEST_AUC = Metric(
    "test_auc",
    f"{__name__}:area_under_roc_curve",
    meaning="area under the ROC curve, test rows",
    label="Test AUC",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    takes=Takes.OUTPUTS,
    needs=(CLASSES, TWO_CLASSES),
)
TEST_LOSS = Metric(
    "test_loss",
    f"{__name__}:loss",
    meaning="mean over the test rows",
    label="Test loss",
    unit=OF_LOSS,
)
WORKER_LOSS = Metric(
    "worker_loss",
    f"{__name__}:loss",
    meaning="mean of the workers' own",
    unit=OF_LOSS,
    models=Models.EACH_WORKER,
)
TEST_PERPLEXITY = Metric(
    "test_perplexity",
    f"{__name__}:perplexity",
    meaning="exponential of the mean loss of the test rows",
    label="Test perplexity",
    unit="classes",
    needs=(LIKELIHOOD,),
)
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
