"""Statistics of replicates, on arrays."""

from itertools import accumulate
from math import comb
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

LEVEL = 0.95
"""Level of every interval."""
ROUNDING = 1e-12
"""Numbers that are so close to each other, relatively, are the same."""


class Interval(NamedTuple):
    """An estimate and its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """Estimate and interval to four digits."""
        if np.isnan(self.low):
            return f"{self.mean:.4g}"
        if np.isnan(self.mean):
            return f"[{self.low:.4g}, {self.high:.4g}]"
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
    from scipy.special import stdtrit  # a tenth of a second, also to read a scenario

    with np.errstate(over="ignore"):
        error = float(values.std(ddof=1)) / np.sqrt(values.size)
    half = float(stdtrit(values.size - 1, 0.5 + LEVEL / 2)) * error
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
) -> tuple[float, float]:
    """Returns between which times a curve first came to its target.

    It was seen at evaluations alone: the curve got there after the one before the first
    that is at the target.

    Args:
        times: Times of the evaluations, increasing; at least one.
        values: Values of the metric.
        target: Value to reach.
        higher: Whether the target is reached from below.

    Returns:
        Times of the evaluation before and of that evaluation: the first one is both if
        it is at time zero. Of a curve that was never there, its last time and infinity.
    """
    there = np.flatnonzero(values >= target if higher else values <= target)
    if not there.size:
        return float(times[-1]), np.inf
    first = int(there[0])
    return float(times[first - 1]) if first else 0.0, float(times[first])


MEDIANS = (
    "each time is known to lie between two evaluations, and the interval is from the "
    "earlier one of one replicate to the later one of another (exact binomial ranks); "
    "of fewer than six replicates it is their range, which holds the median in 94 % of "
    "cases with 5, 88 % with 4, 75 % with 3 and 50 % with 2"
)
"""How medians of times and their intervals are found, as captions say it."""


def ranks(replicates: int) -> int:
    """Returns how many of the smallest, and of the largest, an interval leaves out.

    It is the 95 % interval of a median, less one: from the value of that rank to its
    mirror image. Fewer than six values have none; 0 is then their range.
    """
    few = [chance <= (1 - LEVEL) / 2 for chance in _chances(replicates)]
    return max(0, sum(few) - 1)


def confidence(replicates: int) -> float:
    """Returns the chance with which the interval of a median holds it, at least."""
    return 1 - 2 * _chances(replicates)[ranks(replicates)]


def interval_name(replicates: int) -> str:
    """Returns what the interval of a median is: one of 95 %, or the range of few."""
    chance = confidence(replicates)
    if chance >= LEVEL:
        return f"{100 * LEVEL:g} % interval"
    return f"range ({100 * chance:.0f} % interval)"


def _chances(tosses: int) -> list[float]:
    """Returns the chance of at most 0, 1, ... heads in some tosses of a fair coin."""
    ways = accumulate(comb(tosses, heads) for heads in range(tosses + 1))
    return [number / 2**tosses for number in ways]


def median_interval(
    low: Float[np.ndarray, " n"], high: Float[np.ndarray, " n"]
) -> tuple[float, float]:
    """Returns an interval of the median of numbers that are known to lie in others.

    It is exact whatever law they follow: from the lower end of one of them to the upper
    end of another, so far apart as a binomial law asks for. NaN for fewer than two.

    Args:
        low: Lower ends, perhaps infinite.
        high: Upper ends, in the same order.

    Source: Hahn and Meeker, Statistical Intervals (1991), chapter 5.
    """
    if low.size < 2:
        return float("nan"), float("nan")
    beyond = ranks(low.size)
    return float(np.sort(low)[beyond]), float(np.sort(high)[-1 - beyond])


def median_time(
    low: Float[np.ndarray, " n"], high: Float[np.ndarray, " n"]
) -> Interval:
    """Returns the time by which half of the replicates are seen to have arrived.

    Infinite where fewer than half ever are, with its interval as `median_interval`; it
    never lies beyond what was seen.

    It is the upper end of the period that holds the median of the nonparametric
    estimate for numbers that are known to lie between evaluations, where all replicates
    are evaluated at the same times.

    Source: Turnbull, The empirical distribution function with arbitrarily grouped,
    censored and truncated data (Journal of the Royal Statistical Society B 1976).

    Args:
        low: Time up to which each had not arrived; infinite if it never will.
        high: Time at which it was seen to have arrived; infinite if it was not.
    """
    if not high.size:
        return Interval(*[float("nan")] * 3)
    middle = float(np.sort(high)[(high.size - 1) // 2])
    return Interval(middle, *median_interval(low, high))
