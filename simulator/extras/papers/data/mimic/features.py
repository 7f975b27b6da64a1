"""Statistics of a stay's time series: 17 variables, 7 sub-periods, 6 statistics."""

import re

import numpy as np
from jaxtyping import Bool, Float64

VARIABLES = (
    "Capillary refill rate",
    "Diastolic blood pressure",
    "Fraction inspired oxygen",
    "Glascow coma scale eye opening",
    "Glascow coma scale motor response",
    "Glascow coma scale total",
    "Glascow coma scale verbal response",
    "Glucose",
    "Heart Rate",
    "Height",
    "Mean blood pressure",
    "Oxygen saturation",
    "Respiratory rate",
    "Systolic blood pressure",
    "Temperature",
    "Weight",
    "pH",
)
"""Variables in the spelling and order of the benchmark."""
CATEGORICAL = frozenset(v for v in VARIABLES if "coma" in v or "refill" in v)
"""Variables with texts in their cells, whose leading number counts."""
TEXTS = {
    "no response-ett": 1.0,
    "no response": 1.0,
    "incomprehensible sounds": 2.0,
    "inappropriate words": 3.0,
    "confused": 4.0,
    "oriented": 5.0,
    "none": 0.0,
    "to pain": 2.0,
    "to speech": 3.0,
    "spontaneously": 4.0,
    "abnormal extension": 2.0,
    "abnormal flexion": 3.0,
    "flex-withdraws": 4.0,
    "localizes pain": 5.0,
    "obeys commands": 6.0,
}
"""Texts without a leading number, in lower case: the benchmark's numbers."""
LEADING = re.compile(r"(\d+(?:\.\d+)?)(?:\s|$)")
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
COLUMNS = tuple(
    f"{variable.lower().replace(' ', '_')}_{period}_{statistic}"
    for variable in VARIABLES
    for period in PERIODS
    for statistic in STATISTICS
)
"""Variable by variable, 42 columns each."""


def category(cell: str) -> float:
    """Returns the number of a categorical cell, NaN for an unknown text.

    It is the leading number, as in `4 Spontaneously`, or else that of `TEXTS`.

    Source: Harutyunyan et al., channel_info.json of the benchmark.
    """
    match = LEADING.match(cell)
    return float(match[1]) if match else TEXTS.get(cell.lower(), float("nan"))


def statistics(
    hours: Float64[np.ndarray, " T"], values: Float64[np.ndarray, "T 17"]
) -> Float64[np.ndarray, " P"]:
    """Returns the 714 statistics of one stay, NaN for a variable never measured.

    Sub-periods are, as in the benchmark, fractions of the time between a variable's own
    first and last measurement, so that each holds at least one. The standard deviation
    is that of the population; the skewness of equal values is zero.

    Args:
        hours: Time of each row since admission, hours.
        values: Measurements of the 17 variables, NaN for none.

    Source: Harutyunyan, Khachatrian, Kale, Ver Steeg and Galstyan, Multitask learning
        and benchmarking with clinical time series data (2019), logistic regression.
    """
    measured = ~np.isnan(values)
    inside = _inside(hours, measured)
    kept = np.where(inside, values, 0.0)
    count = inside.sum(axis=1)
    # Where nothing was measured every statistic is NaN, the count too.
    known = np.where(count > 0, count, np.nan)
    mean = kept.sum(axis=1) / known
    deviation = np.where(inside, values - mean[:, None], 0.0)
    variance = (deviation**2).sum(axis=1) / known
    third = (deviation**3).sum(axis=1) / known
    varied = variance > (PRECISION * mean) ** 2
    skew = np.where(varied, third, 0.0) / np.where(varied, variance, 1.0) ** 1.5
    found = np.stack(
        [
            np.where(inside, values, np.inf).min(axis=1),
            np.where(inside, values, -np.inf).max(axis=1),
            mean,
            np.sqrt(variance),
            skew,
            count,
        ],
        axis=-1,
    )
    found[count == 0] = np.nan
    return found.swapaxes(0, 1).ravel()


def _inside(
    hours: Float64[np.ndarray, " T"], measured: Bool[np.ndarray, "T V"]
) -> Bool[np.ndarray, "periods T V"]:
    """Returns whether each measurement lies in each sub-period."""
    times = hours[:, None]
    any_ = measured.any(axis=0)
    first = np.where(any_, np.where(measured, times, np.inf).min(axis=0), 0.0)
    last = np.where(any_, np.where(measured, times, -np.inf).max(axis=0), 0.0)
    fractions = np.array(list(PERIODS.values()))[:, :, None]
    # From the nearer end, so that no rounding takes a bound beyond the other end.
    start = first + fractions[:, 0] * (last - first)
    end = last - (1 - fractions[:, 1]) * (last - first)
    after = times > start[:, None] - TOLERANCE_H
    before = times < end[:, None] + TOLERANCE_H
    return measured & after & before
