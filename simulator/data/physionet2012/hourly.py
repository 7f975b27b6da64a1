"""Hourly means of a stay, with masks, for recurrent models."""

import numpy as np
from jaxtyping import Bool, Float32, Float64

from .stays import HOURS, VARIABLES, Stays


def hourly(stays: Stays) -> Float32[np.ndarray, "N 48 37"]:
    """Returns the mean of each variable in each hour, NaN where none was measured.

    Hour h holds the minutes 60 h to 60 h + 59; minute 2,880, the end of the second day,
    belongs to the last hour.
    """
    num_variables = len(VARIABLES)
    hour = np.minimum(stays.minute // 60, HOURS - 1).astype(np.int64)
    cell = (stays.stay * np.int64(HOURS) + hour) * num_variables + stays.variable
    size = len(stays.ends) * HOURS * num_variables
    count = np.bincount(cell, minlength=size)
    total = np.bincount(cell, stays.value, size)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean.astype(np.float32).reshape(-1, HOURS, num_variables)


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
