"""The stand-in of the credit card clients: payment factors, one-hot demographics."""

import numpy as np
from jaxtyping import Float32, Float64, Int

from .. import names
from ..base import Dataset, generator
from ..parts import Data
from ..split import divided

STREAM = 8
"""Number of the random stream; see `seeds`."""
# Tuned once for the levels stated below, then frozen.
NUM_ROWS, POSITIVE = 30_000, 0.22
NUM_PAYMENTS, NUM_FACTORS = 18, 6
NOISE = 0.5
"""Standard deviation of the noise of a payment column; its factors add about 1."""
DEMOGRAPHICS = {
    "sex": (0.4, 0.6),
    "education": (0.01, 0.35, 0.46, 0.15, 0.01, 0.01, 0.01),
    "marriage": (0.01, 0.45, 0.53, 0.01),
}
"""Shares of the categories; each category is a column of zeros and ones."""
CATEGORY = 0.3
"""Standard deviation of a category's effect on the logit."""
LOGIT = 1.7
"""Standard deviation of the logit by payments."""
RISK = 0.8
"""Correlation of limit and age with the risk by payments."""


def credit_standin(config: Data) -> Dataset:
    """Returns 30,000 rows of 18 and 15 columns, 22 % positive.

    Payment columns show six latent factors, with noise; the class is drawn from a
    logistic law of the factors and, weakly, of sex, education and marriage, which are
    one-hot columns. Limit and age are noisy pictures of the risk, so that the party of
    the profile can predict without the other one's columns, as transfer learning does.

    Logistic regression reaches a test AUC of 0.837 with all columns, 0.822 with those
    of payments, 0.812 with those of the profile, and 0.584 with the one-hot columns.

    Raises:
        ScenarioError: The limit or the test fraction is too high.

    Source: recipe `credit-syn`.
    """
    x, y = generate()
    columns = [*names.counted("payment", NUM_PAYMENTS), "limit", "age"]
    for name, shares in DEMOGRAPHICS.items():
        columns += names.counted(name, len(shares))
    return divided(
        config, "credit-standin", (x, y), num_classes=2, columns=tuple(columns)
    )


def generate() -> tuple[Float32[np.ndarray, "N P"], Int[np.ndarray, " N"]]:
    """Returns features and classes."""
    draw = generator(0, STREAM)
    factors = draw.standard_normal((NUM_ROWS, NUM_FACTORS))
    loading = draw.standard_normal((NUM_FACTORS, NUM_PAYMENTS)) / np.sqrt(NUM_FACTORS)
    payments = factors @ loading
    payments += NOISE * draw.standard_normal(payments.shape)
    weights = draw.standard_normal(NUM_FACTORS)
    risk = factors @ (weights / np.linalg.norm(weights))
    profile = RISK * risk[:, None]
    profile = profile + np.sqrt(1 - RISK**2) * draw.standard_normal((NUM_ROWS, 2))
    profile *= (-1.0, 1.0)

    score = LOGIT * risk + draw.logistic(size=NUM_ROWS)
    blocks: list[Float64[np.ndarray, "N _"]] = [payments, profile]
    for shares in DEMOGRAPHICS.values():
        category = draw.choice(len(shares), NUM_ROWS, p=shares)
        score += (CATEGORY * draw.standard_normal(len(shares)))[category]
        blocks.append(np.eye(len(shares))[category])
    x = np.concatenate(blocks, axis=1).astype(np.float32)
    # The intercept is the one with which this fraction of rows is positive.
    return x, (score > np.quantile(score, 1 - POSITIVE)).astype(np.int32)
