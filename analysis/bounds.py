"""Numbers of replicates of which some are only bounds: intervals and tests of means.

A run that did not reach a target tells from when on it might have, and one that
diverged is at least as bad as anything that was seen. Such numbers bound a mean from
one side: its interval is open on the other, and nothing is decided there.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num, Shaped
from scipy.special import stdtr

from analysis.statistics import Interval, t_interval

EXACT, AT_LEAST, AT_MOST = 0, 1, -1
"""Meaning of a number: the true one is the same, or no smaller, or no larger."""


class Sample(NamedTuple):
    """One number of each replicate.

    Attributes:
        values: Values of the replicates; finite.
        above: Whether some true numbers may be any larger.
        below: Whether some may be any smaller.
        chance: p-value of the open side where every replicate is unbounded there; 1
            elsewhere.
    """

    values: Float[np.ndarray, " n"]
    above: bool = False
    below: bool = False
    chance: float = 1.0

    @property
    def open(self) -> bool:
        """Whether nothing is known of the mean, since both sides are open."""
        return self.above and self.below


def contrast(
    values: Float[np.ndarray, "n k"],
    bounds: Int[np.ndarray, "n k"],
    weights: Num[np.ndarray, " k"],
) -> Sample:
    """Returns of each replicate a sum of its numbers, some of which are bounds.

    Args:
        values: Values of each replicate.
        bounds: Meaning of each value: `EXACT`, `AT_LEAST` or `AT_MOST`.
        weights: Weights of the sum; 1 and -1 for a difference.
    """
    direction = np.sign(weights) * bounds
    return Sample(
        values @ weights, bool((direction > 0).any()), bool((direction < 0).any())
    )


def difference(
    first: Float[np.ndarray, " n"],
    second: Float[np.ndarray, " n"],
    first_bounds: Shaped[np.ndarray, " n"],
    second_bounds: Shaped[np.ndarray, " n"],
) -> Sample:
    """Returns `first - second` of each replicate.

    Where one side is a bound in all n replicates and the other in none, that alone
    says which is larger. Its p-value: if both sides were as likely to be unbounded, and
    were so independently or rather together, as they share their randomness, a pair
    would be like this with a chance of at most q (1 - q) <= 1/4.

    Args:
        first: Values of one group's replicates.
        second: Values of the other group's, in the same order.
        first_bounds: Meaning of the first values, as in `contrast`.
        second_bounds: Meaning of the second values.
    """
    values = np.column_stack([first, second]).astype(np.float64)
    bounds = np.column_stack([first_bounds, second_bounds]).astype(np.int8)
    found = contrast(values, bounds, np.array([1.0, -1.0]))
    unbounded = (bounds != EXACT).mean(axis=0) if len(bounds) else np.zeros(2)
    apart = {*unbounded} == {0.0, 1.0}
    return found._replace(chance=0.25 ** len(bounds)) if apart else found


def interval(sample: Sample) -> Interval:
    """Returns the mean and its 95 % t-interval, infinite where the sample is open.

    Where some numbers are bounds, so is the mean.
    """
    mean, low, high = t_interval(sample.values)
    return Interval(
        mean,
        -np.inf if sample.below else low,
        np.inf if sample.above else high,
    )


def above(sample: Sample, border: float) -> float:
    """Returns the p-value of a mean at or below a border: one-sided t-test.

    It is at most 0.025 exactly where the interval lies above the border. 1 for fewer
    than two replicates, and where the mean may be any smaller.
    """
    if sample.below or sample.values.size < 2:
        return 1.0
    chance = _t_test(sample.values - border)
    return min(chance, sample.chance) if sample.above else chance


def below(sample: Sample, border: float) -> float:
    """Returns the p-value of a mean at or above a border; the image of `above`."""
    return above(mirrored(sample), -border)


def mirrored(sample: Sample) -> Sample:
    """Returns the numbers with their signs turned."""
    return Sample(-sample.values, sample.below, sample.above, sample.chance)


def _t_test(values: Float[np.ndarray, " n"]) -> float:
    """Returns the p-value of a mean that is not positive."""
    n = values.size
    mean = float(values.mean())
    with np.errstate(over="ignore"):
        error = float(values.std(ddof=1)) / np.sqrt(n)
    if error == 0:
        return 0.0 if mean > 0 else 1.0
    return float(stdtr(n - 1, -mean / error))
