"""The stand-in of MIMIC-III's statistics: ill-conditioned groups of columns."""

import numpy as np
from jaxtyping import Float32, Int

from ..base import Dataset, generator
from ..parts import Data
from ..split import finished

STREAM = 6
"""Number of the random stream; see `seeds`."""
# Tuned once for the levels stated below, then frozen.
NUM_TRAIN, NUM_TEST = 17_903, 3_236
NUM_GROUPS, WIDTH = 17, 42
NUM_FACTORS, NUM_SHARED = 3, 4
"""Latent factors of each group, and nuisance factors shared by all groups."""
SIGNAL, NUISANCE, NOISE = 0.5, 2.0, 0.6
"""Standard deviations of a column's three parts, averaged over its random loadings."""
POSITIVE = 0.13
LOGIT = 2.5
"""Standard deviation of the logit; the logistic law's own is 1.81."""


def mimic_standin(config: Data) -> Dataset:
    """Returns 17,903 and 3,236 rows of 17 groups of 42 columns, 13 % positive.

    Columns of a group show three latent factors of that group, under four stronger
    nuisance factors that all groups share, with noise. The class is drawn from a
    logistic law of all 55 factors, the shared ones too, with random weights. The
    classes therefore differ mostly along small eigenvalues.

    On the standard scale the largest eigenvalue of the columns' correlations is 4 times
    37.7 (which bounds the logistic loss's Hessian by 37.7), the difference of the
    classes' means reaches a test AUC of 0.627, logistic regression (coefficient 0.001
    of the regulariser) 0.884. FedBCD-p (two parties, batch 64, constant step 0.001)
    needs about 820, 120 and 70 rounds with 1, 5 and 50 local steps to an AUC of 0.80.

    Raises:
        ScenarioError: The limit is too high.

    Source: recipe `icu-stat`: stand-ins of FedBCD in docs/decisions.md.
    """
    x, y = generate()
    return finished(
        config,
        "mimic-standin",
        (x[:NUM_TRAIN], y[:NUM_TRAIN]),
        (x[NUM_TRAIN:], y[NUM_TRAIN:]),
        num_classes=2,
        columns=tuple(
            f"variable{group}_{column}"
            for group in range(NUM_GROUPS)
            for column in range(WIDTH)
        ),
    )


def generate() -> tuple[Float32[np.ndarray, "N P"], Int[np.ndarray, " N"]]:
    """Returns features and classes, training rows first."""
    draw = generator(0, STREAM)
    num, num_columns = NUM_TRAIN + NUM_TEST, NUM_GROUPS * WIDTH
    num_own = NUM_GROUPS * NUM_FACTORS
    latent = draw.standard_normal((num, num_own + NUM_SHARED))
    # A random loading has variance 1, and the sum over factors is scaled to that.
    own = SIGNAL / np.sqrt(NUM_FACTORS)
    loading = np.zeros((NUM_GROUPS, NUM_FACTORS, NUM_GROUPS, WIDTH))
    for group in range(NUM_GROUPS):
        loading[group, :, group] = own * draw.standard_normal((NUM_FACTORS, WIDTH))
    shared = draw.standard_normal((NUM_SHARED, num_columns))
    shared *= NUISANCE / np.sqrt(NUM_SHARED)
    loadings = np.concatenate([loading.reshape(num_own, num_columns), shared])
    x = NOISE * draw.standard_normal((num, num_columns), np.float32)
    x += latent.astype(np.float32) @ loadings.astype(np.float32)

    weights = draw.standard_normal(num_own + NUM_SHARED)
    weights *= LOGIT / np.linalg.norm(weights)
    score = latent @ weights + draw.logistic(size=num)
    # The intercept is the one with which this fraction of rows is positive.
    return x, (score > np.quantile(score, 1 - POSITIVE)).astype(np.int32)
