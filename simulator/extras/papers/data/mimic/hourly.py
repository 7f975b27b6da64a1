"""Stays as sequences: 48 hours of 17 means and 17 masks, for recurrent models."""

import numpy as np
from jaxtyping import Bool, Float32, Float64

from .features import VARIABLES

HOURS = 48
NAMES = tuple(variable.lower().replace(" ", "_") for variable in VARIABLES)
COLUMNS = tuple(
    f"{name}_hour_{hour}"
    for hour in range(HOURS)
    for name in (*NAMES, *(f"{name}_measured" for name in NAMES))
)
"""Hour by hour: the means of all variables, then their masks."""
VIEWS = (*NAMES, *NAMES) * HOURS
"""View of each column: its variable."""


def means(
    hours: Float64[np.ndarray, " T"], values: Float64[np.ndarray, "T 17"]
) -> Float32[np.ndarray, "48 17"]:
    """Returns the mean of each variable in each hour of a stay, NaN where none is.

    Hour h holds the times from h up to h + 1; 48 h itself belongs to the last one.

    Args:
        hours: Time of each row since admission, hours.
        values: Measurements of the 17 variables, NaN for none.
    """
    hour = np.clip(hours.astype(int), 0, HOURS - 1)
    known = ~np.isnan(values)
    total, count = np.zeros((2, HOURS, len(VARIABLES)))
    np.add.at(total, hour, np.where(known, values, 0.0))
    np.add.at(count, hour, known)
    found = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return found.astype(np.float32)


def typical(x: Float32[np.ndarray, "N 48 17"]) -> Float64[np.ndarray, " 17"]:
    """Returns the mean of each variable's known hours, 0 where there are none."""
    known = ~np.isnan(x)
    total = np.where(known, x, 0.0).sum(axis=(0, 1), dtype=np.float64)
    return total / np.maximum(known.sum(axis=(0, 1)), 1)


def sequences(
    x: Float32[np.ndarray, "N 48 17"], usual: Float64[np.ndarray, " 17"]
) -> Float32[np.ndarray, "N P"]:
    """Returns rows of hours: means, carried forward where there are none, and masks.

    Args:
        x: Hourly means, NaN where there are none.
        usual: Value of each variable before its first measurement.
    """
    masks: Bool[np.ndarray, "N 48 17"] = measured(x)
    both = np.concatenate([filled(x, usual), masks], axis=2, dtype=np.float32)
    return both.reshape(len(x), -1)


def filled(
    means: Float32[np.ndarray, "N T V"], typical: Float64[np.ndarray, " V"]
) -> Float32[np.ndarray, "N T V"]:
    """Returns hourly means without gaps.

    An hour without a measurement has the value of the last hour that had one, and
    before the first one the typical value.

    Args:
        means: Hourly means, NaN where there are none.
        typical: Value of each variable that nothing is known of.
    """
    found = means.copy()
    found[:, 0] = np.where(np.isnan(found[:, 0]), typical, found[:, 0])
    for hour in range(1, found.shape[1]):
        now = found[:, hour]
        found[:, hour] = np.where(np.isnan(now), found[:, hour - 1], now)
    return found


def measured(means: Float32[np.ndarray, "N T V"]) -> Bool[np.ndarray, "N T V"]:
    """Returns the masks: whether a variable was measured in an hour."""
    return ~np.isnan(means)
