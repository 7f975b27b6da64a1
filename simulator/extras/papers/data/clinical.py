"""Features of stays in intensive care: statistics of time series, or hours.

A stay has measurements of several variables. They come group by group: a group is a
variable of a stay.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int, Int64

HOURS = 48
PERIODS = {
    "full": (0.0, 1.0),
    "first10": (0.0, 0.1),
    "first25": (0.0, 0.25),
    "first50": (0.0, 0.5),
    "last10": (0.9, 1.0),
    "last25": (0.75, 1.0),
    "last50": (0.5, 1.0),
}
"""Start and end, as fractions of the time between first and last measurement."""
STATISTICS = ("min", "max", "mean", "std", "skew", "count")
TOLERANCE_H = 1e-6
"""Tolerance in hours at both ends of a sub-period."""
PRECISION = float(np.finfo(np.float64).resolution)


def columns(variables: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of the statistics, variable by variable, 42 of each."""
    return tuple(
        f"{variable}_{period}_{statistic}"
        for variable in variables
        for period in PERIODS
        for statistic in STATISTICS
    )


def statistics(
    hours: Float64[np.ndarray, " M"],
    values: Float64[np.ndarray, " M"],
    group: Int[np.ndarray, " M"],
    num: int,
) -> Float64[np.ndarray, "G 7 6"]:
    """Returns the statistics of each group, NaN of one without a measurement.

    Sub-periods are, as in the benchmark, fractions of the time between a group's own
    first and last measurement, so that each holds at least one. The standard deviation
    is the population's; the skewness of equal values is zero, and the count of a group
    without a measurement, too.

    Args:
        hours: Time of each measurement since admission, hours.
        values: Measurements.
        group: Group of each measurement, ascending.
        num: Number of groups.

    Source: Harutyunyan, Khachatrian, Kale, Ver Steeg and Galstyan, Multitask learning
        and benchmarking with clinical time series data (2019), logistic regression.
    """
    first, last = _extremes(hours, group, num)
    found = np.empty((num, len(PERIODS), len(STATISTICS)))
    for period, (begin, end) in enumerate(PERIODS.values()):
        # From the nearer end, so that no rounding takes a bound beyond the other end.
        low = first + begin * (last - first)
        high = last - (1 - end) * (last - first)
        after = hours > low[group] - TOLERANCE_H
        inside = after & (hours < high[group] + TOLERANCE_H)
        found[:, period] = _of_period(values[inside], group[inside], num)
    return found


def _extremes(
    values: Float64[np.ndarray, " M"], group: Int[np.ndarray, " M"], num: int
) -> tuple[Float64[np.ndarray, " G"], Float64[np.ndarray, " G"]]:
    low, high = np.full(num, np.nan), np.full(num, np.nan)
    if group.size:
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        low[group[starts]] = np.minimum.reduceat(values, starts)
        high[group[starts]] = np.maximum.reduceat(values, starts)
    return low, high


def _of_period(
    values: Float64[np.ndarray, " M"], group: Int[np.ndarray, " M"], num: int
) -> Float64[np.ndarray, "G 6"]:
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


def means(
    values: Float[np.ndarray, " M"], cell: Int64[np.ndarray, " M"], num: int
) -> Float32[np.ndarray, " cells"]:
    """Returns the mean of the values in each cell, NaN of none."""
    count = np.bincount(cell, minlength=num)
    total = np.bincount(cell, values, num)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean.astype(np.float32)


def typical(x: Float[np.ndarray, "*N P"]) -> Float64[np.ndarray, " P"]:
    """Returns the mean of the known values of each column, 0 where none is known."""
    known, axes = ~np.isnan(x), tuple(range(x.ndim - 1))
    total = np.where(known, x, 0.0).sum(axis=axes, dtype=np.float64)
    return total / np.maximum(known.sum(axis=axes), 1)


def imputed(
    x: Float[np.ndarray, "N P"], typical: Float64[np.ndarray, " P"]
) -> Float64[np.ndarray, "N P"]:
    """Returns features with typical values in place of unknown ones."""
    return np.where(np.isnan(x), typical, x)


def filled(
    means: Float32[np.ndarray, "N T V"], typical: Float64[np.ndarray, " V"]
) -> Float32[np.ndarray, "N T V"]:
    """Returns hourly means without gaps.

    An hour without a measurement has the value of the last hour that had one, and
    before the first one the typical value.
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
