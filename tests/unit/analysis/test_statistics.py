import math

import numpy as np
import pytest
import scipy.stats

from analysis import statistics
from analysis.statistics import Interval, first_reached, held, kaplan_meier_median


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
    assert str(found) == "2 [-0.4841, 4.484]"


@pytest.mark.parametrize("values", [[], [4.0], [1.0, math.nan], [1.0, math.inf]])
def test_t_interval_of_too_little(values: list[float]) -> None:
    found = statistics.t_interval(np.array(values))
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    if len(values) == 1:
        assert str(found) == "4"


def test_paired_t_interval_is_scipys() -> None:
    generator = np.random.default_rng(2)
    shared = generator.normal(0, 5, 6)
    first, second = shared + generator.normal(1, 0.1, 6), shared
    expected = scipy.stats.ttest_rel(first, second).confidence_interval(0.95)
    found = statistics.paired_t_interval(first, second)
    assert found[1:] == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert found.high - found.low < 0.5  # what is shared, of spread 5, cancels
    with pytest.raises(ValueError, match="pairs must be complete, got 6 and 5 values"):
        statistics.paired_t_interval(first, second[:5])


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
    assert first_reached(times, curve, 0.8, higher=True) == (1, True)
    assert first_reached(times, curve, 0.85, higher=True) == (3, True)
    assert first_reached(times, curve, 0.95, higher=True) == (3, False)
    assert first_reached(times, curve, 0.05, higher=False) == (3, False)
    assert first_reached(times, 1 - curve, 0.3, higher=False) == (1, True)
    assert first_reached(times, curve * math.nan, 0.5, higher=True) == (3, False)


def _median(times: list[float], reached: list[bool]) -> Interval:
    return kaplan_meier_median(np.array(times), np.array(reached))


def test_kaplan_meier_by_hand() -> None:
    # At 1: 4/5. Lost at 2. At 3: 4/5 * 2/3 = 8/15. At 4: 4/15 <= 1/2.
    found = _median([4, 1, 2, 5, 3], [True, True, False, False, True])
    assert found.mean == 4
    # Log-log bounds with Greenwood's variance, written out:
    #   at 1: S = 0.8, v = 1/20;  at 3: S = 8/15, v = 1/20 + 1/6;
    #   at 4: S = 4/15, v = 1/20 + 1/6 + 1/2
    lows, highs = [], []
    for survival, variance in ((0.8, 1 / 20), (8 / 15, 13 / 60), (4 / 15, 43 / 60)):
        error = 1.959964 * math.sqrt(variance) / abs(math.log(survival))
        lows.append(survival ** math.exp(error))
        highs.append(survival ** math.exp(-error))
    assert lows[0] < 0.5  # so the interval begins at 1,
    assert min(highs) > 0.5  # and is open above
    assert found[1:] == (1, math.inf)


def test_kaplan_meier_where_all_arrived_is_the_median() -> None:
    times = np.random.default_rng(3).permutation(np.arange(1.0, 22.0))
    found = kaplan_meier_median(times, np.ones(21, bool))
    # Of 21 coins, five or fewer show heads with a chance of 1.3 %, six with 3.9 %.
    assert found == (11, 6, 16)
    assert found.mean == np.median(times)


@pytest.mark.parametrize(
    ("replicates", "place"), [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (20, 6)]
)
def test_the_exact_interval_is_as_short_as_it_can_be(
    replicates: int, place: int
) -> None:
    # By hand: all six lie on one side of the median in 2 * (1/2)^6 = 3.1 % of cases.
    times = np.arange(1.0, replicates + 1)
    found = kaplan_meier_median(times, np.ones(replicates, bool))
    assert found[1:] == (place, replicates + 1 - place)
    inside = scipy.stats.binom(replicates, 0.5)
    for closer, enough in ((0, True), (1, False)):
        kept = inside.cdf(replicates - place - closer) - inside.cdf(place + closer - 1)
        assert (kept >= 0.95) == enough


def test_up_to_five_times_have_the_interval_of_their_logarithms() -> None:
    times = np.array([4.0, 1.0, 2.0])
    found = kaplan_meier_median(times, np.ones(3, bool))
    # Logarithms 2, 0, 1 (of base 2): mean 1, deviation 1, t(2) = 4.303.
    half = 4.302653 / math.sqrt(3)
    assert found.mean == 2
    assert found[1:] == pytest.approx((2 ** (1 - half), 2 ** (1 + half)))
    assert _median([3, 3, 3], [True] * 3) == pytest.approx((3, 3, 3))
    # a time of zero has no logarithm: t-interval of 0, 1, 2, from zero on
    zero = _median([0, 1, 2], [True] * 3)
    assert zero == pytest.approx((1, 0, 1 + half))
    assert _median([0, 0], [True] * 2) == (0, 0, 0)


LAWS = {
    "lognormal": (lambda g, n: g.lognormal(0.0, 1.0, n), 1.0),
    "exponential": (lambda g, n: g.exponential(1.0, n), math.log(2)),
    "gamma": (lambda g, n: g.gamma(4.0, 1.0, n), scipy.stats.gamma(4).median()),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("replicates", [3, 5, 10, 20])
def test_intervals_of_medians_hold_them(law: str, replicates: int) -> None:
    draw, median = LAWS[law]
    draws = 2_000
    times = draw(np.random.default_rng([replicates, len(law)]), (draws, replicates))
    low, high = np.array([statistics.median_interval(each) for each in times]).T
    assert (low <= np.median(times, axis=1)).all()
    assert (np.median(times, axis=1) <= high).all()
    held = np.count_nonzero((low <= median) & (median <= high))
    # The share of 2,000 has a standard error of sqrt(0.95 * 0.05 / 2000) = 0.0049;
    # three of them below 95 % happen in 0.13 % of cases.
    assert held / draws >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / draws)


def test_a_half_is_a_half_however_it_is_rounded() -> None:
    for half in range(1, 60):
        reached = np.arange(2 * half) < half
        found = kaplan_meier_median(np.arange(1.0, 2 * half + 1), reached)
        assert found.mean == half


@pytest.mark.parametrize(
    ("times", "reached", "median"),
    [
        # S is 3/4 from 1 on, 1/2 from 2 to 3, then 1/4 and 0. The middle would be 2.5.
        ([1, 2, 3, 7], [True] * 4, 2),
        # S is 1/2 from 2 on for good: there is no next arrival to take the middle with.
        ([1, 2, math.inf, math.inf], [True, True, False, False], 2),
        ([1, 2, 9, 9], [True, True, False, False], 2),
        # 3/4, 1/2; lost at 3; from 5 on 0. The middle would be 3.5.
        ([1, 2, 3, 5], [True, True, False, True], 2),
        # Lost at 1: 2/3, then 1/3.
        ([1, 2, 3, 5], [False, True, True, True], 3),
        # Two at once: from 1 to the half.
        ([1, 1, 2, 3], [True] * 4, 1),
        # 4/5, 3/5, lost, 3/10: nowhere 1/2.
        ([1, 2, 3, 4, 5], [True, True, False, True, True], 4),
    ],
)
def test_the_median_is_the_first_time_with_at_most_half(
    times: list[float], reached: list[bool], median: float
) -> None:
    assert _median(times, reached).mean == median


def test_nothing_is_said_by_a_bound_where_nobody_waits() -> None:
    # One is lost before the first of six arrives. S is 1/6 from 5 on; v = sum
    # 1 / (k (k + 1)), k = 1 to 5, is 1 - 1/6; the upper bound is
    # S ** exp(-1.96 sqrt(v) / log 6), above a half; at 6 there is none.
    upper = (1 / 6) ** math.exp(-1.959964 * math.sqrt(5 / 6) / math.log(6))
    assert upper > 0.5
    assert _median([0.5, 1, 2, 3, 4, 5, 6], [False] + [True] * 6).high == math.inf
    # Of seven, S is 1/7 from 6 on: v is 1 - 1/7, and the bound is below a half.
    upper = (1 / 7) ** math.exp(-1.959964 * math.sqrt(6 / 7) / math.log(7))
    assert upper < 0.5
    assert _median([0.5, 1, 2, 3, 4, 5, 6, 7], [False] + [True] * 7).high == 6


def test_a_median_is_the_same_replicates_in_any_unit() -> None:
    rng = np.random.default_rng(5)
    for size in (4, 9, 20):
        times, reached = rng.exponential(size=size), rng.random(size) < 0.8
        reached[0] = False  # up to five that all arrive have a t-interval
        here = kaplan_meier_median(times, reached)
        there = kaplan_meier_median(np.exp(times), reached)
        np.testing.assert_allclose(np.exp(here), there)


def test_kaplan_meier_of_those_who_never_arrive() -> None:
    assert math.isnan(_median([5], [False]).low)
    # Of five, none arrives by the median in one case of 32; of six, in one of 64.
    assert _median([5, 6, 7, 8, 9], [False] * 5) == (math.inf, 0, math.inf)
    assert _median([5, 6, 7, 8, 9, 9], [False] * 6) == (math.inf, 5, math.inf)
    assert _median([1, 2, 9, 9, 9], [True, True, False, False, False]).mean == math.inf
    never = _median([1, 2, 3, math.inf, math.inf], [True] * 3 + [False] * 2)
    assert never.mean == 3
    # one who is still waiting leaves the interval of few open
    assert _median([1, 2, 3, 4, 9], [True] * 4 + [False]).high == math.inf
    # lost before anybody arrived: they say nothing
    assert _median([3, 4, 1, 1], [True, True, False, False]).mean == 3
    alone = _median([2], [True])
    assert alone.mean == 2
    assert math.isnan(alone.low)


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
