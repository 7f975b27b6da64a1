"""Features of a stay: statistics, as the benchmark on MIMIC-III has them, or hours."""

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from ..mimic.features import (
    PERIODS,
    PRECISION,
    STATISTICS,
    TOLERANCE_H,
)
from .stays import HOURS, VARIABLES, Stays

COLUMNS = tuple(
    f"{variable.lower()}_{period}_{statistic}"
    for variable in VARIABLES
    for period in PERIODS
    for statistic in STATISTICS
)
"""Variable by variable, 42 columns each."""


def statistics(stays: Stays) -> Float64[np.ndarray, "N P"]:
    """Returns the 1,554 statistics of each stay, NaN for a variable never measured.

    Those are minimum, maximum, mean, standard deviation (of the population), skewness
    (0 of equal values) and count of each variable in each of seven sub-periods, which
    are fractions of the time between its first and last measurement. A count is 0, not
    NaN, where nothing was measured.

    Source: Harutyunyan, Khachatrian, Kale, Ver Steeg and Galstyan, Multitask learning
        and benchmarking with clinical time series data (2019), logistic regression.
    """
    num_stays, num_variables = len(stays.ends), len(VARIABLES)
    group = stays.stay.astype(np.int64) * num_variables + stays.variable
    order = np.argsort(group, kind="stable")
    group, hours = group[order], stays.minute[order] / 60.0
    values = stays.value[order].astype(np.float64)
    first, last = _extremes(hours, group, num_stays * num_variables)
    found = np.empty((num_stays * num_variables, len(PERIODS), len(STATISTICS)))
    for period, (begin, end) in enumerate(PERIODS.values()):
        # From the nearer end, so that no rounding takes a bound beyond the other end.
        low = first + begin * (last - first)
        high = last - (1 - end) * (last - first)
        inside = (hours > low[group] - TOLERANCE_H) & (
            hours < high[group] + TOLERANCE_H
        )
        found[:, period] = _of_period(values, group, inside, len(found))
    return found.reshape(num_stays, -1)


def _extremes(
    values: Float64[np.ndarray, " M"], group: Int64[np.ndarray, " M"], num: int
) -> tuple[Float64[np.ndarray, " G"], Float64[np.ndarray, " G"]]:
    """Returns the least and the largest value of each group, NaN of none.

    Args:
        values: Values, those of a group together.
        group: Group of each, ascending.
        num: Number of groups.
    """
    low, high = np.full(num, np.nan), np.full(num, np.nan)
    if group.size:
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        low[group[starts]] = np.minimum.reduceat(values, starts)
        high[group[starts]] = np.maximum.reduceat(values, starts)
    return low, high


def _of_period(
    values: Float64[np.ndarray, " M"],
    group: Int64[np.ndarray, " M"],
    inside: Bool[np.ndarray, " M"],
    num: int,
) -> Float64[np.ndarray, "G 6"]:
    """Returns the statistics of each group's values in a sub-period."""
    values, group = values[inside], group[inside]
    count = np.bincount(group, minlength=num).astype(float)
    known = np.where(count > 0, count, np.nan)
    mean = np.bincount(group, values, num) / known
    deviation = values - mean[group]
    variance = np.bincount(group, deviation**2, num) / known
    third = np.bincount(group, deviation**3, num) / known
    varied = variance > (PRECISION * mean) ** 2
    skew = np.where(varied, third, 0.0) / np.where(varied, variance, 1.0) ** 1.5
    skew[count == 0] = np.nan
    low, high = _extremes(values, group, num)
    return np.stack([low, high, mean, np.sqrt(variance), skew, count], axis=1)


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
