"""Statistics of replicates, on arrays."""

import math
from itertools import accumulate
from math import comb
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

LEVEL = 0.95
"""Level of every interval."""
ROUNDING = 1e-12
"""Numbers that are so close to each other, relatively, are the same."""


DIGITS = 4
MOST = 1e6
"""Numbers from here on, and those below its inverse, are written as powers of ten."""


class Interval(NamedTuple):
    """An estimate and its interval; an end is infinite where nothing is known of it."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """Estimate and interval, or the one end of it that is known."""
        if np.isnan(self.low):
            return short(self.mean)
        text, low, high = self.rounded
        if low and high:
            return f"{text} [{low}, {high}]".lstrip()
        if not high and self.low == 0:
            low = ""  # as every ratio is
        told = f"at least {low}" if low else f"at most {high}" if high else "unbounded"
        return f"{text} [{told}]" if text else told

    @property
    def rounded(self) -> tuple[str, str, str]:
        """Estimate and ends with the same decimals; "" of what is not finite.

        Those are the decimals that two digits of the interval's half-width need, or of
        its lower end where this is less and positive, as a ratio's may be. Ends are
        rounded outwards, so that the interval never looks shorter.
        """
        known = [value for value in self if np.isfinite(value)]
        half = max(known, default=0.0) - min(known, default=0.0)
        if np.isfinite(self.high - self.low):
            half = (self.high - self.low) / 2
        if 0 < self.low < half:
            half = self.low
        mean, low, high = (
            rounded(value, half, outwards) if np.isfinite(value) else ""
            for value, outwards in zip(self, (0, -1, 1), strict=True)
        )
        return mean, low, high


UNKNOWN = Interval(math.nan, math.nan, math.nan)


def rounded(value: float, half: float, direction: int = 0) -> str:
    """Returns a number with the decimals that two digits of a half-width need.

    `direction` -1 rounds down, 1 up.
    """
    if not 0 < half < MOST or half < 1 / MOST or abs(value) >= MOST:
        return short(value)
    decimals = max(0, 1 - math.floor(math.log10(half)))
    # Not quite a half: what is exact but for its last bits stays as it is.
    value += direction * (0.5 - 1e-6) / 10**decimals
    return f"{round(value, decimals) + 0.0:.{decimals}f}"  # 0 has no sign


def short(value: float) -> str:
    """Returns a number to four digits, and without a power of ten below a million."""
    if np.isnan(value):
        return ""
    whole = 10**DIGITS <= abs(value) < MOST
    return f"{value:.0f}" if whole else f"{value:.{DIGITS}g}"


def t_interval(values: Float[np.ndarray, " n"]) -> Interval:
    """Returns the mean of independent replicates and its t-interval.

    NaN bounds for fewer than two replicates, which do not show their spread, and where
    a value is not finite.
    """
    values = np.asarray(values, np.float64)
    if not values.size:
        return UNKNOWN
    mean = float(values.mean())
    if values.size < 2 or not np.isfinite(values).all():
        return UNKNOWN._replace(mean=mean)
    from scipy.special import stdtrit  # a tenth of a second, also to read a scenario

    with np.errstate(over="ignore"):
        error = float(values.std(ddof=1)) / np.sqrt(values.size)
    half = float(stdtrit(values.size - 1, 0.5 + LEVEL / 2)) * error
    return Interval(mean, mean - half, mean + half)


def interval_within(
    values: Float[np.ndarray, " n"], least: float, most: float
) -> Interval:
    """Returns `t_interval`, or the range of the values where that leaves some bounds.

    An interval of few values may exceed limits that the quantity cannot.

    Args:
        values: One value of each replicate.
        least: Smallest value that the quantity can have, or -infinity.
        most: Largest value, or infinity.
    """
    found = t_interval(values)
    if least <= found.low <= found.high <= most or np.isnan(found.low):
        return found
    return Interval(found.mean, float(np.min(values)), float(np.max(values)))


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

    Returns:
        Times of the evaluation before and of that evaluation: the first one is both if
        it is at time zero. Of a curve that was never there, its last time and infinity.
    """
    there = np.flatnonzero(values >= target if higher else values <= target)
    if not there.size:
        return float(times[-1]), np.inf
    first = int(there[0])
    return float(times[first - 1]) if first else 0.0, float(times[first])


MIDDLE = (
    "of an even number of replicates the lower of the middle two, where both reached it"
)
"""Description of the median of some times, in legends."""
MEDIANS = (
    "each time is known to lie between two evaluations, and the interval is from the "
    "earlier one of one replicate to the later one of another (exact binomial ranks); "
    "of fewer than six replicates it is their range, which holds the median in 94 % of "
    "cases with 5, 88 % with 4, 75 % with 3 and 50 % with 2"
)
"""Description of medians of times and their intervals, in captions."""


def ranks(replicates: int) -> int:
    """Returns how many of the smallest, and of the largest, an interval omits.

    It is the 95 % interval of a median, less one: from the value of that rank to its
    mirror image. Fewer than six values have none; 0 is then their range.
    """
    few = [chance <= (1 - LEVEL) / 2 for chance in _chances(replicates)]
    return max(0, sum(few) - 1)


def confidence(replicates: int) -> float:
    """Returns the chance with which the interval of a median holds it, at least."""
    return 1 - 2 * _chances(replicates)[ranks(replicates)]


def interval_name(replicates: int) -> str:
    """Returns the name of a median's interval: 95 %, or the range of few."""
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
    """Returns an interval of the median of numbers that are known only by bounds.

    It is exact whatever law they follow: from the lower end of one of them to the upper
    end of another, as far apart as a binomial law requires. NaN for fewer than two.

    Args:
        low: Lower ends, infinite ones included.
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

    Infinite where half or more never are (the median is then after `median_after`),
    with its interval as `median_interval`; it is never beyond the observed times. Where
    exactly half are, the estimate below leaves any later time as well.

    It is the upper end of the period that holds the median of the nonparametric
    estimate for numbers between evaluations, where all replicates are evaluated at the
    same times.

    Source: Turnbull, The empirical distribution function with arbitrarily grouped,
    censored and truncated data (Journal of the Royal Statistical Society B 1976).

    Args:
        low: Time up to which each had not arrived; infinite if it never will.
        high: Time at which it was seen to have arrived; infinite if it was not.
    """
    if not high.size:
        return UNKNOWN
    before, after = np.sort(high)[[(high.size - 1) // 2, high.size // 2]]
    middle = float(before) if np.isfinite(after) else np.inf
    return Interval(middle, *median_interval(low, high))


def median_after(low: Float[np.ndarray, " n"]) -> float:
    """Returns the time up to which half of the replicates had not arrived.

    Infinite where half never will; NaN of none.
    """
    return float(np.sort(low)[(low.size - 1) // 2]) if low.size else float("nan")
