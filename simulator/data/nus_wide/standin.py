"""The stand-in of NUS-WIDE: two non-linear views of the same latent factors."""

import numpy as np
from jaxtyping import Float, Int

from .. import names
from ..base import Dataset, generator
from ..parts import Data
from ..split import finished

STREAM = 7
"""Number of the random stream; see `seeds`."""
# Chosen once for the levels stated below, then frozen.
DRAW = 40
"""Seed: the level that a model reaches depends on the weights, mostly on their norm."""
NUM_TRAIN, NUM_TEST, NUM_FACTORS = 4_000, 2_000, 12
NUM_IMAGE, NUM_TAGS = 80, 120
GAIN, NOISE = 1.5, 0.7
PRODUCTS, LABEL_NOISE = 0.7, 0.8


def nus_wide_standin(config: Data) -> Dataset:
    """Returns 4,000 and 2,000 rows of 80 columns of images and 120 of tags.

    Both views are tanh(1.5 Z A / sqrt(12)) + 0.7 noise of 12 latent factors Z, each
    with its own standard normal A. The class is the sign of
    Z w / sqrt(12) + 0.7 (z1 z2 - z3 z4) + 0.8 logistic noise, 1 where it is positive:
    partly out of reach of a linear model, which reaches a test AUC of 0.726. FedBCD-p
    with one tanh layer of 64 units per party (batch 256, step 0.05 / sqrt(t + 1), 200
    rounds) ends at 0.723, 0.738 and 0.736 with 1, 5 and 15 local steps, means of ten
    replicates (`docs/results/fedbcd-nus`). Columns have a variance near 1 as they are,
    so that `raw`, the recipe to the letter, and `standard` hardly differ.

    Raises:
        ScenarioError: The limit is too high.

    Source: recipe `twoview`: stand-ins of FedBCD in docs/decisions.md.
    """
    x, y = generate()
    return finished(
        config,
        "nus_wide-standin",
        (x[:NUM_TRAIN], y[:NUM_TRAIN]),
        (x[NUM_TRAIN:], y[NUM_TRAIN:]),
        num_classes=2,
        columns=names.counted("image", NUM_IMAGE) + names.counted("tag", NUM_TAGS),
    )


def generate() -> tuple[Float[np.ndarray, "N P"], Int[np.ndarray, " N"]]:
    """Returns features and classes, training rows first."""
    draw = generator(DRAW, STREAM)
    num = NUM_TRAIN + NUM_TEST
    z = draw.standard_normal((num, NUM_FACTORS))
    mixing = draw.standard_normal((NUM_FACTORS, NUM_IMAGE + NUM_TAGS))
    weights = draw.standard_normal(NUM_FACTORS)
    x = np.tanh(GAIN * z @ mixing / np.sqrt(NUM_FACTORS))
    x += NOISE * draw.standard_normal(x.shape)
    score = z @ weights / np.sqrt(NUM_FACTORS)
    score += PRODUCTS * (z[:, 0] * z[:, 1] - z[:, 2] * z[:, 3])
    score += LABEL_NOISE * draw.logistic(size=num)
    return x, (score > 0).astype(np.int32)
