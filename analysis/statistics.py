"""Statistics of replicates, on arrays."""

import warnings
from typing import NamedTuple

import numpy as np
import scipy.stats
from jaxtyping import Bool, Float

LEVEL = 0.95
"""Level of every interval."""
ROUNDING = 1e-12
"""A product of survivals that is so close to a half is a half."""


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

    NaN bounds for fewer than two replicates, which say nothing of their spread, and
    where a value is not finite.
    """
    values = np.asarray(values, np.float64)
    if not values.size:
        return Interval(float("nan"), float("nan"), float("nan"))
    mean = float(values.mean())
    if values.size < 2 or not np.isfinite(values).all():
        return Interval(mean, float("nan"), float("nan"))
    with np.errstate(over="ignore"):
        error = float(values.std(ddof=1)) / np.sqrt(values.size)
    half = float(scipy.stats.t.ppf(0.5 + LEVEL / 2, values.size - 1)) * error
    return Interval(mean, mean - half, mean + half)


def paired_t_interval(
    first: Float[np.ndarray, " n"], second: Float[np.ndarray, " n"]
) -> Interval:
    """Returns the mean of `first - second` and its t-interval.

    Args:
        first: Values of one group's replicates.
        second: Values of the other's, in the same order; they share their randomness.

    Raises:
        ValueError: There are not equally many.
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if first.shape != second.shape:
        raise ValueError(
            f"pairs must be complete, got {first.size} and {second.size} values"
        )
    return t_interval(first - second)


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


def log_log_slope(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> float:
    """Returns the exponent b of the power law y = a x ** b, by least squares of logs.

    NaN where a value is not positive and finite, or there are not two different x.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    whole = np.isfinite(x).all() and np.isfinite(y).all()
    if not whole or np.unique(x).size < 2 or min(x.min(), y.min()) <= 0:
        return float("nan")
    centred = np.log(x) - np.log(x).mean()
    return float(centred @ np.log(y) / (centred @ centred))


def first_reached(
    times: Float[np.ndarray, " n"],
    values: Float[np.ndarray, " n"],
    target: float,
    *,
    higher: bool,
) -> tuple[float, bool]:
    """Returns when a curve first is at its target, or its last time and False.

    Args:
        times: Times of the evaluations, increasing; at least one.
        values: Values of the metric.
        target: Value to reach.
        higher: Whether the target is reached from below.
    """
    there = np.flatnonzero(values >= target if higher else values <= target)
    if there.size:
        return float(times[there[0]]), True
    return float(times[-1]), False


MEDIANS = (
    "where a replicate did not arrive they are of Kaplan and Meier, with bounds of the "
    "survival function (log-log); else the interval is between two of the times, or, "
    "of fewer than six, the t-interval of their logarithms"
)
"""How medians of times and their intervals are found, as captions say it."""


def kaplan_meier_median(
    times: Float[np.ndarray, " n"], reached: Bool[np.ndarray, " n"]
) -> Interval:
    """Returns the median time to an event that some replicates did not live to see.

    Args:
        times: Times of the event, or of the last observation; infinite for a replicate
            that will never see it.
        reached: Whether the event came.

    Returns:
        The first time at which at most half are still waiting, infinite if there is
        none, and its 95 % interval. If all arrived, that of `median_interval`. Else
        where the bounds of the survival function (log-log transformed) are at a half;
        infinite where they do not come to it. If none arrived, the median is beyond the
        shortest wait, for enough of them (half would have arrived by their median). NaN
        bounds for fewer than two.

    The median is a quantile, the smallest t with S(t) <= 1/2, as in lifelines. Where S
    is exactly 1/2 for a while, as for an even number that all arrive, R's survival, SAS
    and the sample median take the middle between that time and the next arrival. Here
    the next one may never come; the first time exists whenever half arrive, and it is
    the same replicate's in seconds, rounds and bytes. Where S is 0 the bounds have no
    value and say nothing, as in R; lifelines ends the interval there.

    Source: Klein and Moeschberger, Survival Analysis (2003), section 4.5, for the
    quantile; Brookmeyer and Crowley, A confidence interval for the median survival time
    (Biometrics 1982), for the interval.
    """
    times, reached = np.asarray(times, np.float64), np.asarray(reached, bool)
    if not reached.any():
        chance = 0.5**times.size  # that none arrives by its median
        low = float(times.min()) if chance <= (1 - LEVEL) / 2 else 0.0
        bounds = (low, np.inf) if times.size > 1 else (float("nan"),) * 2
        return Interval(np.inf, *bounds)
    # SciPy takes no infinite time; all that counts is that it comes after the others.
    beyond = 1 + 2 * float(times[reached].max())
    right = np.minimum(times[~reached], beyond)
    waiting = scipy.stats.ecdf(
        scipy.stats.CensoredData(uncensored=times[reached], right=right)
    ).sf

    def fall(probabilities: np.ndarray) -> float:
        known = np.nan_to_num(probabilities, nan=1.0)
        below = np.flatnonzero(known <= 0.5 + ROUNDING)
        return float(waiting.quantiles[below[0]]) if below.size else np.inf

    median = fall(waiting.probabilities)
    if times.size < 2:
        return Interval(median, float("nan"), float("nan"))
    if reached.all():
        return Interval(median, *median_interval(times))
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        bounds = waiting.confidence_interval(LEVEL, method="log-log")
    # Where the last one has arrived the transform has no value; then none waits.
    low = np.where(waiting.probabilities == 0, 0.0, bounds.low.probabilities)
    return Interval(median, fall(low), fall(bounds.high.probabilities))


def median_interval(times: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """Returns a 95 % interval of the median of times that are all known.

    From six times on it is exact whatever law they follow: between two of them, as far
    apart as a binomial law asks for. Fewer are never far enough apart. Then it is the
    t-interval of their logarithms, around their geometric mean: by 200,000 simulations
    each it holds the median in 94.8 to 95.1 % of cases for lognormal, exponential and
    gamma times, and in 93.5 % at the least for times without a tail towards zero
    (uniform, or exponential beyond a constant). Where a time is zero, which has no
    logarithm, it is from zero to the end of the t-interval of the times themselves.

    Args:
        times: Times, at least two, >= 0.

    Source: Hahn and Meeker, Statistical Intervals (1991), chapter 5, for six or more.
    """
    times = np.sort(np.asarray(times, np.float64))
    below = scipy.stats.binom.cdf(np.arange(times.size), times.size, 0.5)
    # So many times at either end can be left out.
    beyond = int(np.searchsorted(below, (1 - LEVEL) / 2, side="right"))
    if beyond:
        return float(times[beyond - 1]), float(times[-beyond])
    if times[0] > 0:
        _, low, high = np.exp(t_interval(np.log(times)))
        return float(low), float(high)
    return 0.0, t_interval(times).high
