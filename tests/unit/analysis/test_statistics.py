import math

import numpy as np
import pytest
import scipy.stats

from stalesim.analysis import statistics
from stalesim.analysis.statistics import (
    confidence,
    first_reached,
    held,
    median_interval,
    median_time,
)


def test_t_interval_is_scipys() -> None:
    values = np.random.default_rng(1).normal(3, 2, 7)
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = statistics.t_interval(values)
    assert found.mean == pytest.approx(values.mean(), rel=1e-14)
    assert found[1:] == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_t_interval_by_hand() -> None:
    # mean 2, s = 1; the quantile of t with 2 degrees is (2p - 1) / sqrt(2p (1 - p))
    half = 0.95 / math.sqrt(2 * 0.975 * 0.025) / math.sqrt(3)
    found = statistics.t_interval(np.array([1.0, 2.0, 3.0]))
    assert found == pytest.approx((2, 2 - half, 2 + half), rel=1e-9)
    assert str(found) == "2.0 [-0.5, 4.5]"


@pytest.mark.parametrize("values", [[], [4.0], [1.0, math.nan], [1.0, math.inf]])
def test_t_interval_of_too_little(values: list[float]) -> None:
    found = statistics.t_interval(np.array(values))
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    if len(values) == 1:
        assert str(found) == "4"


def test_values_hold_until_the_next() -> None:
    grid = np.array([0.0, 1.0, 1.5, 3.0, 9.0])
    found = held(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0]), grid)
    np.testing.assert_array_equal(found, [math.nan, 10, 10, 30, 30])
    # several evaluations between two commits: the last one counts
    found = held(np.array([0.0, 0.0, 5.0]), np.array([1.0, 2.0, 3.0]), grid)
    np.testing.assert_array_equal(found, [2, 2, 2, 2, 3])


def test_first_reached() -> None:
    times = np.array([0.0, 1.0, 2.0, 3.0])
    curve = np.array([0.1, 0.8, 0.7, 0.9])
    assert first_reached(times, curve, 0.8, higher=True) == (0, 1)
    assert first_reached(times, curve, 0.85, higher=True) == (2, 3)
    assert first_reached(times, curve, 0.95, higher=True) == (3, math.inf)
    assert first_reached(times, curve, 0.05, higher=False) == (3, math.inf)
    assert first_reached(times, 1 - curve, 0.3, higher=False) == (0, 1)
    assert first_reached(times, curve * math.nan, 0.5, higher=True) == (3, math.inf)
    assert first_reached(times, curve, 0.1, higher=True) == (0, 0)  # at its beginning
    assert first_reached(times[1:], curve[1:], 0.8, higher=True) == (0, 1)


@pytest.mark.parametrize(
    ("replicates", "place"), [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (20, 6)]
)
def test_the_exact_interval_is_as_short_as_it_can_be(
    replicates: int, place: int
) -> None:
    # By hand: all six lie on one side of the median in 2 * (1/2)^6 = 3.1 % of cases.
    times = np.arange(1.0, replicates + 1)
    assert median_interval(times, times) == (place, replicates + 1 - place)
    inside = scipy.stats.binom(replicates, 0.5)
    for closer, enough in ((0, True), (1, False)):
        kept = inside.cdf(replicates - place - closer) - inside.cdf(place + closer - 1)
        assert (kept >= 0.95) == enough
    kept = inside.cdf(replicates - place) - inside.cdf(place - 1)
    assert confidence(replicates) == pytest.approx(kept)


def test_the_interval_of_few_is_their_range() -> None:
    times = np.array([4.0, 1.0, 2.0])
    assert median_time(times, times) == (2, 1, 4)
    assert [confidence(n) for n in (2, 3, 4, 5)] == [0.5, 0.75, 0.875, 0.9375]
    alone = median_time(times[:1] - 1, times[:1])
    assert alone.mean == 4
    assert math.isnan(alone.low)
    assert math.isnan(median_time(times[:0], times[:0]).mean)


def test_all_within_one_period_have_its_width() -> None:
    """Three replicates that were seen at 500, evaluated every 50: not [500, 500]."""
    found = median_time(np.full(3, 450.0), np.full(3, 500.0))
    assert str(found) == "500 [450, 500]"


def test_no_interval_ends_beyond_what_was_seen() -> None:
    low, high = np.array([1.0, 5, 20]), np.array([2.0, 6, math.inf])
    assert median_time(low, high) == (6, 1, math.inf)
    never = np.full(3, math.inf)
    assert median_time(never, never) == (math.inf,) * 3


@pytest.mark.parametrize("replicates", [3, 5, 10, 20])
@pytest.mark.parametrize("every", [0.01, 1.0])
def test_intervals_of_medians_hold_them(replicates: int, every: float) -> None:
    draws = 2_000
    generator = np.random.default_rng(replicates)
    times = generator.lognormal(0.0, 1.0, (draws, replicates))
    high = every * np.ceil(times / every)
    high[generator.random(times.shape) < 0.05] = math.inf  # never seen to arrive
    ends = [median_interval(one - every, one) for one in high]
    held = sum(low <= 1.0 <= high for low, high in ends) / draws
    # Four standard errors of a share below what is promised.
    promised = confidence(replicates)
    assert held >= promised - 4 * (promised * (1 - promised) / draws) ** 0.5


def test_log_log_slope_of_power_laws() -> None:
    x = np.array([1.0, 3.0, 4.0, 20.0])
    for power in (-1, -0.5, 0, 2):
        assert statistics.log_log_slope(x, 7 * x**power) == pytest.approx(power)
    y = np.array([2.0, 1.0, 1.5, 0.2])
    expected = np.polyfit(np.log(x), np.log(y), 1)[0]
    assert statistics.log_log_slope(x, y) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([2.0], [1.0]),
        ([2.0, 2.0], [1.0, 3.0]),
        ([1.0, 2.0], [1.0, 0.0]),
        ([1.0, 2.0], [1.0, -1.0]),
        ([0.0, 2.0], [1.0, 1.0]),
        ([1.0, 2.0], [1.0, np.nan]),
        ([1.0, 2.0], [1.0, np.inf]),
    ],
)
def test_log_log_slope_of_nothing(x: list[float], y: list[float]) -> None:
    assert np.isnan(statistics.log_log_slope(np.array(x), np.array(y)))
