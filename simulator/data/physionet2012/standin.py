"""The stand-in of PhysioNet 2012: irregular measurements of hidden factors."""

import numpy as np

from ..base import generator
from .stays import HOURS, VARIABLES, Stays

STREAM = 12
"""Number of the random stream; see `seeds`."""
# Tuned once for the levels stated below, then frozen.
NUM_TRAIN, NUM_TEST = 2_000, 1_000
POSITIVE = 0.14
NUM_FACTORS = 6
SLOPE = 0.8
"""Standard deviation of a factor's change over the two days; 1 of its level at their
middle."""
NOISE = 1.2
"""Standard deviation of the noise of a measurement; its factors add about 1."""
LOGIT = 2.2
"""Standard deviation of the logit; the logistic law's own is 1.81."""
FEWEST, MOST = 0.5, 20.0
"""Expected numbers of measurements of the rarest and the most frequent variable."""


def stays() -> tuple[Stays, Stays]:
    """Returns 2,000 and 1,000 stays, 14 % of which end in death.

    A stay has six hidden factors, which change in time by straight lines; a variable,
    measured at random times between half a time and 20 times on average, shows some of
    them with noise. The class is drawn from a logistic law of the factors at the end.
    Logistic regression (standard scale, coefficient 0.1 of the regulariser) reaches a
    test AUC of 0.81 with the statistics and of 0.80 with the hours.
    """
    draw = generator(0, STREAM)
    num = NUM_TRAIN + NUM_TEST
    level = draw.standard_normal((num, NUM_FACTORS))
    slope = SLOPE * draw.standard_normal((num, NUM_FACTORS))
    weights = draw.standard_normal(NUM_FACTORS)
    weights *= LOGIT / np.linalg.norm(weights)
    score = (level + slope / 2) @ weights / np.hypot(1, SLOPE / 2)
    score += draw.logistic(size=num)
    # The intercept is the one with which this fraction of stays is positive.
    died = (score > np.quantile(score, 1 - POSITIVE)).astype(np.int8)

    expected = np.geomspace(FEWEST, MOST, len(VARIABLES))[
        draw.permutation(len(VARIABLES))
    ]
    counts = draw.poisson(expected, (num, len(VARIABLES)))
    stay, variable = (
        np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape)
    )
    minute = draw.integers(0, 60 * HOURS, stay.size)
    loading = draw.standard_normal((len(VARIABLES), NUM_FACTORS)) / np.sqrt(NUM_FACTORS)
    time = minute / (60 * HOURS) - 0.5
    factors = level[stay] + slope[stay] * time[:, None]
    value = (factors * loading[variable]).sum(axis=1)
    value += NOISE * draw.standard_normal(value.size)

    descriptors = np.stack(
        [
            np.rint(65 + 12 * draw.standard_normal(num)),
            draw.integers(0, 2, num),
            np.rint(170 + 10 * draw.standard_normal(num)),
            draw.integers(1, 5, num),
        ],
        axis=1,
    )
    border = np.searchsorted(stay, NUM_TRAIN)
    ends = np.cumsum(counts.sum(axis=1), dtype=np.int32)
    train, test = (
        Stays(
            minute[of].astype(np.int16),
            variable[of].astype(np.int8),
            value[of].astype(np.float32),
            ends[rows] - (ends[rows.start - 1] if rows.start else 0),
            descriptors[rows].astype(np.float32),
            died[rows],
        )
        for of, rows in (
            (slice(0, border), slice(0, NUM_TRAIN)),
            (slice(border, None), slice(NUM_TRAIN, num)),
        )
    )
    return train, test
