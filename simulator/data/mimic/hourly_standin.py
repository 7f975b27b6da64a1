"""The stand-in of MIMIC-III's sequences: AR(1) processes under a drifting severity."""

import numpy as np
from jaxtyping import Float32, Int32

from ..base import Dataset, generator
from ..parts import Data
from ..split import finished
from . import hourly
from .features import VARIABLES

STREAM = 14
"""Number of the random stream; see `seeds`."""
# Tuned once for the levels stated below, then frozen.
NUM_TRAIN, NUM_TEST = 8_000, 2_000
POSITIVE = 0.13
MEMORY = 0.8
"""Correlation of a variable's own process from one hour to the next."""
DRIFT = 1.0
"""Standard deviation of the severity's change in two days; 1 of that at admission."""
LOADING = 0.25
"""Standard deviation of the effect of severity on a variable."""
LOGIT = 2.5
"""Effect of one standard deviation of the last severity on the logit."""
RAREST, USUAL = 0.1, 0.9
"""Chances that the rarest and the most frequent variable is measured in an hour."""


def hourly_standin(config: Data) -> Dataset:
    """Returns 8,000 and 2,000 stays of 48 hours, 13 % of which end in death.

    A stay has a severity that drifts along a straight line. Each of the 17 variables is
    an AR(1) process, to which the severity adds, and is measured in some hours only,
    more often the severer the state. The class is drawn from a logistic law of the
    severity in the last hour. Logistic regression (standard scale, coefficient 1000 /
    8000 of the regulariser) reaches a test AUC of 0.866 with all hours, of 0.859 with
    the last one.

    Raises:
        ScenarioError: The limit is too high.

    Source: recipe `icu-syn`: 48 steps, 17 variables, masks, severity that drifts.
    """
    x, y = generate()
    usual = hourly.typical(x[:NUM_TRAIN])
    rows = hourly.sequences(x, usual)
    return finished(
        config,
        "mimic-hourly-standin",
        (rows[:NUM_TRAIN], y[:NUM_TRAIN]),
        (rows[NUM_TRAIN:], y[NUM_TRAIN:]),
        num_classes=2,
        columns=hourly.COLUMNS,
        views=hourly.VIEWS,
        frames=hourly.HOURS,
    )


def generate() -> tuple[Float32[np.ndarray, "N 48 17"], Int32[np.ndarray, " N"]]:
    """Returns hourly values, NaN where none was measured, and classes."""
    draw = generator(0, STREAM)
    num, hours, variables = NUM_TRAIN + NUM_TEST, hourly.HOURS, len(VARIABLES)
    start, drift = draw.standard_normal((2, num))
    time = np.linspace(0, 1, hours)
    severity = start[:, None] + DRIFT * drift[:, None] * time
    last = severity[:, -1] / np.hypot(1, DRIFT)
    score = LOGIT * last + draw.logistic(size=num)
    # The intercept is the one with which this fraction of stays is positive.
    y = (score > np.quantile(score, 1 - POSITIVE)).astype(np.int32)

    loading = (LOADING * draw.standard_normal(variables)).astype(np.float32)
    own = draw.standard_normal((num, hours, variables), np.float32)
    fresh = np.float32(np.sqrt(1 - MEMORY**2))
    for hour in range(1, hours):
        own[:, hour] = np.float32(MEMORY) * own[:, hour - 1] + fresh * own[:, hour]
    x = own + severity[:, :, None].astype(np.float32) * loading
    chance = np.geomspace(RAREST, USUAL, variables)[draw.permutation(variables)]
    chance = chance * np.exp(0.1 * severity[:, :, None]).clip(max=1.1)
    absent = draw.random((num, hours, variables), np.float32) > chance
    x[absent] = np.nan
    return x, y
