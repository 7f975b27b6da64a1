"""Medians of numbers that are known to lie in intervals: what is counted, and how."""

import math

import numpy as np
import pytest
import scipy.stats

from stalesim.analysis import bounds
from stalesim.analysis.bounds import Sample, exact
from stalesim.analysis.claims import verdict

VALUES = np.array([0.3, -0.1, 0.5, 0.2, 0.4, 0.6, 0.7])
INF = math.inf


@pytest.mark.parametrize("border", [-1.0, 0.0, 0.15, 0.26, 3.0])
def test_one_sided_sign_tests(border: float) -> None:
    for found, count, in (
        (bounds.above, (border < VALUES).sum()), (bounds.below, (border > VALUES).sum())
    ):  # fmt: skip
        expected = scipy.stats.binomtest(count, 7, 0.5, alternative="greater").pvalue
        assert found(exact(VALUES), border) == pytest.approx(expected)


def test_no_p_value_is_below_two_to_the_minus_n() -> None:
    """However equal the replicates are; a t-test of three equal ones said 0."""
    for n in (1, 3, 6):
        assert bounds.above(exact(np.ones(n)), 0.5) == pytest.approx(0.5**n)
    assert bounds.above(exact(np.ones(3)), 1.0) == 1
    assert bounds.above(exact(np.zeros(0)), 0.0) == 1


def test_what_may_lie_on_either_side_counts_for_neither() -> None:
    low = np.array([0.1, 0.1, -0.1, -INF, 0.0, 2.0])
    high = np.array([0.1, 0.2, 0.1, INF, 0.0, INF])
    sample = Sample(low, high)
    three = scipy.stats.binomtest(3, 6, 0.5, alternative="greater").pvalue
    assert bounds.above(sample, 0.0) == pytest.approx(three)
    assert bounds.below(sample, 0.0) == 1
    assert bounds.below(sample.mirrored, 0.0) == pytest.approx(three)


@pytest.mark.parametrize("n", [6, 7, 12, 20])
def test_a_border_beyond_the_interval_is_decided(n: int) -> None:
    values = np.arange(float(n))
    _, low, high = bounds.interval(exact(values))
    assert bounds.above(exact(values), low - 0.5) <= 0.025
    assert bounds.above(exact(values), low) > 0.025
    assert bounds.below(exact(values), high + 0.5) <= 0.025


def test_the_interval_is_between_ends_of_what_is_known() -> None:
    sample = Sample(np.arange(6.0), np.array([1.0, 2, 3, 4, 5, INF]))
    assert bounds.interval(sample) == (3, 0, INF)  # the medians are 2.5 and 3.5
    assert bounds.in_words(bounds.interval(sample), 6) == "3.0 [unbounded]"
    few = exact(np.array([1.0, 2.0, 4.0]))
    assert bounds.in_words(bounds.interval(few), 3) == "2.0 [1.0, 4.0] (range, 75 %)"
    assert bounds.in_words(bounds.interval(exact(np.ones(1))), 1) == "1"


def test_contrasts_of_intervals() -> None:
    low = np.array([[1.0, 2.0], [INF, INF], [0.0, INF]])
    high = np.array([[3.0, 2.0], [INF, INF], [INF, INF]])
    found = bounds.contrast(Sample(low, high), np.array([1, -1]))
    assert found.low.tolist() == [-1, -INF, -INF]  # of two infinities: nothing
    assert found.high.tolist() == [1, INF, INF]
    # What has no weight says nothing.
    assert bounds.contrast(Sample(low, high), np.array([2, 0])).low.tolist() == [
        *(2, INF, 0)
    ]


def test_logarithms() -> None:
    found = bounds.logarithm(
        Sample(np.array([-INF, 0, 1, -2]), np.array([0.0, 0, 1, -1]))
    )
    assert found.low.tolist() == [-INF, -INF, 0, -INF]
    # Zero that is known, and less, have none.
    assert found.high.tolist() == [-INF, INF, 0, INF]


@pytest.mark.parametrize("border", [-7.0, 0.0, 0.3, 3.0, 1e6])
def test_rounding_decides_nothing(border: float) -> None:
    """Runs without randomness: numbers that are the border but for rounding."""
    for away in (-1, 0, 1):
        nearly = border + away * 2e-16 * (1 + abs(border))
        found = verdict.side(exact(np.full(6, nearly)), border)
        assert (found.for_it, found.against) == (1, 1)
    apart = 1e-9 * (1 + abs(border))
    above = verdict.side(exact(np.full(6, border + apart)), border)
    assert above.for_it < 0.05 < above.against
    below = verdict.side(exact(np.full(6, border - apart)), border)
    assert below.against < 0.05 < below.for_it


def test_a_median_of_which_half_is_open_is_said_to_be_a_bound() -> None:
    low, high = np.array([1.0, 2, 5, 5]), np.array([2.0, 3, np.inf, np.inf])
    assert bounds.side_of_median(bounds.Sample(low, high)) == "at least "
    assert bounds.side_of_median(bounds.Sample(low, high).mirrored) == "at most "
    assert bounds.side_of_median(bounds.Sample(low[:3], high[:3])) == ""


@pytest.mark.parametrize("mean", [-1.0, 1.0])
def test_an_infinite_end_excludes_nothing(mean: float) -> None:
    """A ratio of at most twice 1 has no least logarithm; all 20 lie on one side."""
    sample = exact(mean + np.linspace(-0.1, 0.1, 20))
    sides = verdict.near(sample, -INF, 0.0), verdict.near(sample, 0.0, INF)
    true, false = sides if mean < 0 else sides[::-1]
    assert true.for_it < 1e-4 < 0.99 < true.against
    assert false.against < 1e-4 < 0.99 < false.for_it
