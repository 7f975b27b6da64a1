"""The stand-in of the Parkinson speech features: latent factors, heavy tails."""

import numpy as np
from jaxtyping import Float32, Int

from ..base import Dataset, generator
from ..groups import grouping
from ..parts import Data
from ..split import divided

STREAM = 4
"""Number of the random stream; see `seeds`."""
# Tuned once for the accuracy stated below, then frozen.
NUM_SUBJECTS, NUM_RECORDINGS, NUM_HEALTHY = 252, 3, 63
NUM_BLOCKS, NUM_FACTORS, WIDTH = 3, 8, 251
RECORDING = 0.3
"""Standard deviation of a factor between the recordings of a subject, 1 between
subjects."""
NOISE = 0.3
"""Standard deviation of the noise of a column; its factors add about 1."""
LABEL_NOISE = 0.1
"""Standard deviation of the noise of the score that decides the class."""


def parkinson_standin(config: Data) -> Dataset:
    """Returns 252 subjects with 3 recordings each, 753 features, 75 % positive.

    Each of three blocks of 251 columns shows its own eight latent factors, with
    noise, through a hyperbolic sine that makes tails heavy, and on a scale of its own.
    The class depends on one direction in the factors of every block, so that no block
    suffices. Logistic regression (standard scale, coefficient 0.001 of the
    regulariser) reaches a test accuracy of 0.85 on the mean of ten splits (0.78 to
    0.89), and of 0.68 to 0.70 on one block alone. No subject is in both halves.

    Raises:
        ScenarioError: The limit or the test fraction is too high.

    Source: recipe `parkinson-syn`.
    """
    x, y, subject = generate()
    return divided(
        config,
        "parkinson-standin",
        (x, y),
        num_classes=2,
        columns=tuple(
            f"block{block}_{column}"
            for block in range(NUM_BLOCKS)
            for column in range(WIDTH)
        ),
        groups=subject,
        groupings=(grouping("subject", subject),),
    )


def generate() -> tuple[
    Float32[np.ndarray, "N P"], Int[np.ndarray, " N"], Int[np.ndarray, " N"]
]:
    """Returns features, classes, and the subject of each row."""
    draw = generator(0, STREAM)
    blocks = (NUM_BLOCKS, NUM_FACTORS)
    factors = draw.standard_normal((NUM_SUBJECTS, 1, *blocks))
    direction = draw.standard_normal(blocks)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    score = (factors * direction).sum(axis=(1, 2, 3)) / np.sqrt(NUM_BLOCKS)
    score += LABEL_NOISE * draw.standard_normal(NUM_SUBJECTS)
    y = np.ones(NUM_SUBJECTS, np.int32)
    y[np.argsort(score)[:NUM_HEALTHY]] = 0

    recordings = (NUM_SUBJECTS, NUM_RECORDINGS)
    spoken = factors + RECORDING * draw.standard_normal((*recordings, *blocks))
    loading = draw.standard_normal((*blocks, WIDTH)) / np.sqrt(NUM_FACTORS)
    x = np.einsum("srbf,bfw->srbw", spoken, loading)
    x += NOISE * draw.standard_normal(x.shape)
    tail = draw.uniform(0.3, 1.2, (NUM_BLOCKS, WIDTH))
    unit = np.exp(2 * draw.standard_normal((NUM_BLOCKS, WIDTH)))
    x = unit * np.sinh(tail * x) / tail
    subject = np.repeat(np.arange(NUM_SUBJECTS), NUM_RECORDINGS)
    return x.reshape(len(subject), -1).astype(np.float32), y[subject], subject
