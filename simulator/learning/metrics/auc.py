"""Area under the ROC curve, exact, on the device."""

from typing import Any

from jaxtyping import Float, Num

from ...metrics import CLASSES, TWO_CLASSES, Metric, Takes

COUNTABLE = 92_681
"""Largest number of scores for which twice the pairs stay below 2**32."""


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
