"""Intervals that contain a number of each replicate.

A measured number is an interval without width. A time to a target is between two
evaluations, or after the last one; a critical value between two swept values; a
diverged run is as bad as the worst one seen, or worse. A claim is about the median of
such numbers, and counts the replicates whose interval is on one side of its threshold.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num

from .statistics import LEVEL, UNKNOWN, Interval, confidence, median_interval


class Sample(NamedTuple):
    """One number of each replicate, or several.

    Attributes:
        low: Lower bounds of the true numbers, infinite ones included.
        high: Upper bounds of them.
    """

    low: Float[np.ndarray, "n ..."]
    high: Float[np.ndarray, "n ..."]

    @property
    def mirrored(self) -> "Sample":
        """The numbers with their signs turned."""
        return Sample(-self.high, -self.low)


def exact(values: Num[np.ndarray, " n"]) -> Sample:
    """Returns numbers that are known."""
    return Sample(np.asarray(values, np.float64), np.asarray(values, np.float64))


def contrast(sample: Sample, weights: Num[np.ndarray, " k"]) -> Sample:
    """Returns a weighted sum of each replicate's numbers."""
    used = weights != 0  # infinity is not to be multiplied by zero
    low, high, by = sample.low[:, used], sample.high[:, used], weights[used]
    with np.errstate(invalid="ignore"):  # of infinities nothing is known
        least = (np.where(by > 0, low, high) * by).sum(axis=1)
        most = (np.where(by > 0, high, low) * by).sum(axis=1)
    return Sample(
        np.where(np.isnan(least), -np.inf, least),
        np.where(np.isnan(most), np.inf, most),
    )


def logarithm(sample: Sample) -> Sample:
    """Returns logarithms; of a number that cannot be positive, nothing is known."""
    nothing = (sample.high < 0) | ((sample.high == 0) & (sample.low == 0))
    with np.errstate(divide="ignore"):
        low = np.log(np.maximum(np.where(nothing, 0.0, sample.low), 0.0))
        high = np.log(np.where(nothing, np.inf, sample.high))
    return Sample(low, high)


def interval(sample: Sample) -> Interval:
    """Returns the median and its interval, as `median_interval`.

    For unknown numbers it is the middle between the least and the greatest possible, or
    whichever of these is finite.
    """
    if not sample.low.size:
        return UNKNOWN
    with np.errstate(invalid="ignore"):
        ends = np.array([np.median(sample.low), np.median(sample.high)])
    ends = ends[np.isfinite(ends)]
    middle = float(ends.mean()) if ends.size else float("nan")
    return Interval(middle, *median_interval(*sample))


def side_of_median(sample: Sample) -> str:
    """Returns "at least " or "at most " where no more is known of a median, else "".

    That is where half of the numbers or more have no other bound: of times, where half
    of the runs did not reach their target.
    """
    if not sample.low.size:
        return ""
    with np.errstate(invalid="ignore"):
        low, high = np.isfinite([np.median(sample.low), np.median(sample.high)])
    if low == high:
        return ""
    return "at least " if low else "at most "


def in_words(found: Interval, replicates: int) -> str:
    """Returns the text of an interval, with its kind where that is not 95 %."""
    if replicates < 2 or confidence(replicates) >= LEVEL:
        return str(found)
    return f"{found} (range, {100 * confidence(replicates):.0f} %)"


def above(sample: Sample, border: float) -> float:
    """Returns the p-value of a median at or below a border: exact one-sided sign test.

    Counts numbers that are certainly above it, of all: those that may be on either side
    do not count. It is at most 0.025 exactly where the interval is above.
    """
    from scipy.special import bdtrc  # takes a fifth of a second, as in `statistics`

    n, count = sample.low.size, int((sample.low > border).sum())
    return float(bdtrc(count - 1, n, 0.5)) if count else 1.0


def below(sample: Sample, border: float) -> float:
    """Returns the p-value of a median at or above a border; the image of `above`."""
    return above(sample.mirrored, -border)
