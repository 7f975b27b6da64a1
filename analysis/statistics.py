"""Statistics of replicates, on arrays."""

from typing import NamedTuple

import numpy as np
import scipy.stats
from jaxtyping import Bool, Float

LEVEL = 0.95
"""Of every interval."""


class Interval(NamedTuple):
    """An estimate and its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """Estimate and interval to four digits."""
        if np.isnan(self.low):
            return f"{self.mean:.4g}"
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def t_interval(values: Float[np.ndarray, " n"]) -> Interval:
    """Returns the mean of independent replicates and its t-interval.

    NaN bounds for fewer than two replicates, which say nothing of their spread.
    """
    values = np.asarray(values, np.float64)
    mean = float(values.mean())
    if values.size < 2:
        return Interval(mean, float("nan"), float("nan"))
    if not np.isfinite(values).all():
        return Interval(mean, float("nan"), float("nan"))
    with np.errstate(over="ignore"):
        error = float(values.std(ddof=1)) / np.sqrt(values.size)
    half = float(scipy.stats.t.ppf(0.5 + LEVEL / 2, values.size - 1)) * error
    return Interval(mean, mean - half, mean + half)


def held(
    times: Float[np.ndarray, " n"],
    values: Float[np.ndarray, " n"],
    at: Float[np.ndarray, " g"],
) -> Float[np.ndarray, " g"]:
    """Returns a step curve on a grid: each value holds until the next one.

    NaN before the first time.
    """
    index = np.searchsorted(times, at, side="right") - 1
    return np.where(index >= 0, values[np.maximum(index, 0)], np.nan)


def first_reached(
    times: Float[np.ndarray, " n"],
    values: Float[np.ndarray, " n"],
    target: float,
    *,
    higher: bool,
) -> tuple[float, bool]:
    """Returns when a curve first is at its target, or its last time and False.

    Args:
        times: of the evaluations, increasing.
        values: of the metric.
        target: to reach.
        higher: whether it is reached from below.
    """
    there = np.flatnonzero(values >= target if higher else values <= target)
    if there.size:
        return float(times[there[0]]), True
    return float(times[-1]), False


def kaplan_meier_median(
    times: Float[np.ndarray, " n"], reached: Bool[np.ndarray, " n"]
) -> Interval:
    """Returns the median time to an event that some replicates did not live to see.

    Infinite where the curve of those still waiting does not fall to a half. The
    interval is that of the survival function, log-log transformed.
    """
    if not reached.any():
        return Interval(np.inf, float(np.min(times)), np.inf)
    data = scipy.stats.CensoredData(uncensored=times[reached], right=times[~reached])
    waiting = scipy.stats.ecdf(data).sf

    def fall(quantiles: np.ndarray, probabilities: np.ndarray) -> float:
        below = np.flatnonzero(np.nan_to_num(probabilities, nan=1.0) <= 0.5)
        return float(quantiles[below[0]]) if below.size else np.inf

    median = fall(waiting.quantiles, waiting.probabilities)
    if times.size < 2:
        return Interval(median, float("nan"), float("nan"))
    with np.errstate(divide="ignore", invalid="ignore"):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            bounds = waiting.confidence_interval(LEVEL, method="log-log")
    # Where everybody has arrived the transform has no value; nobody is waiting then.
    done = waiting.probabilities == 0
    low = np.where(done, 0.0, bounds.low.probabilities)
    high = bounds.high.probabilities
    return Interval(median, fall(waiting.quantiles, low), fall(waiting.quantiles, high))
