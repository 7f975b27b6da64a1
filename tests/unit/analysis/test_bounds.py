"""Intervals and tests of means of which some numbers are only bounds."""

import math

import numpy as np
import pytest
import scipy.stats

from analysis import bounds
from analysis.bounds import AT_LEAST, AT_MOST, EXACT, Sample
from analysis.claims import verdict
from analysis.statistics import t_interval

VALUES = np.array([0.3, -0.1, 0.5, 0.2, 0.4])


@pytest.mark.parametrize("border", [-1.0, 0.0, 0.1, 0.26, 3.0])
def test_one_sided_t_tests(border: float) -> None:
    sample = Sample(VALUES)
    for found, side in ((bounds.above, "greater"), (bounds.below, "less")):
        expected = scipy.stats.ttest_1samp(VALUES, border, alternative=side).pvalue
        assert found(sample, border) == pytest.approx(expected)


def test_a_border_at_the_end_of_the_interval() -> None:
    interval = bounds.interval(Sample(VALUES))
    assert interval == t_interval(VALUES)
    assert bounds.above(Sample(VALUES), interval.low) == pytest.approx(0.025)
    assert bounds.below(Sample(VALUES), interval.high) == pytest.approx(0.025)


def test_bounds_open_one_side() -> None:
    _, low, high = t_interval(VALUES)
    found = bounds.interval(Sample(VALUES, above=True))
    assert found[1:] == (low, math.inf)
    assert bounds.below(Sample(VALUES, above=True), 9.0) == 1
    assert bounds.above(Sample(VALUES, above=True), -9.0) < 0.001
    found = bounds.interval(Sample(VALUES, below=True))
    assert found[1:] == (-math.inf, high)
    assert bounds.above(Sample(VALUES, below=True), -9.0) == 1


def test_what_a_contrast_of_bounds_says() -> None:
    values = np.array([[1.0, 2.0], [3.0, 5.0]])

    def found(*ends: int) -> tuple[bool, bool]:
        sample = bounds.contrast(values, np.array([ends, (0, 0)]), np.array([1, -1]))
        assert sample.values.tolist() == [-1, -2]
        return sample.above, sample.below

    assert found(EXACT, EXACT) == (False, False)
    assert found(AT_LEAST, EXACT) == (True, False)
    assert found(EXACT, AT_LEAST) == (False, True)
    assert found(AT_MOST, AT_LEAST) == (False, True)
    assert found(AT_LEAST, AT_LEAST) == (True, True)  # of infinity less infinity
    # What has no weight says nothing.
    ends = np.array([[AT_LEAST, EXACT]] * 2)
    assert not bounds.contrast(values, ends, np.array([0, 1])).above


def test_numbers_without_spread_and_too_few() -> None:
    assert bounds.above(Sample(np.ones(3)), 0.5) == 0
    assert bounds.above(Sample(np.ones(3)), 1.0) == 1
    assert bounds.below(Sample(np.ones(3)), 1.5) == 0
    assert bounds.above(Sample(np.ones(1)), 0.0) == 1
    assert bounds.above(Sample(np.ones(0)), 0.0) == 1


def test_all_on_one_side_and_none_on_the_other() -> None:
    # P(one side n times, the other never) of fair independent sides is 4 ** -n; of
    # sides with any other common chance q it is (q (1 - q)) ** n, which is less.
    one, other = np.full(4, 2.0), np.full(4, 2.0)
    whole, none = np.full(4, AT_LEAST), np.full(4, EXACT)
    apart = bounds.difference(one, other, whole, none)
    assert bounds.above(apart, 0.0) == pytest.approx(4**-4)
    assert bounds.below(apart, 9.0) == 1
    turned = bounds.difference(one, other, none, whole)
    assert bounds.below(turned, 0.0) == pytest.approx(4**-4)
    some = np.array([AT_LEAST, AT_LEAST, AT_LEAST, EXACT])
    assert bounds.above(bounds.difference(one, other, some, none), 0.0) == 1
    assert bounds.difference(one, other, none, none).chance == 1
    nothing = np.zeros(0)
    assert bounds.difference(nothing, nothing, nothing, nothing).chance == 1


@pytest.mark.parametrize("border", [-7.0, 0.0, 0.3, 3.0, 1e6])
def test_rounding_decides_nothing(border: float) -> None:
    """Runs without randomness: five numbers that are the border but for rounding."""
    for away in (-1, 0, 1):
        nearly = border + away * 2e-16 * (1 + abs(border))
        found = verdict.side(Sample(np.full(5, nearly)), border)
        assert (found.for_it, found.against) == (1, 1)
    apart = 1e-9 * (1 + abs(border))
    above = verdict.side(Sample(np.full(5, border + apart)), border)
    assert above.for_it < 0.05 < above.against
    below = verdict.side(Sample(np.full(5, border - apart)), border)
    assert below.against < 0.05 < below.for_it
