"""Medians of times to a target against the nonparametric estimate of such times."""

import numpy as np
import pytest

from stalesim.analysis.statistics import median_time

ROUNDS = 2_000


def estimate(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns upper ends of pieces, and the chance of each, by slow NumPy.

    Number i is known to lie in (l_i, u_i], u_i perhaps infinite. Between the sorted
    ends c_0 < c_1 < ... let p_j be the chance of (c_{j-1}, c_j], and a_ij whether that
    piece is in (l_i, u_i]. The estimate that makes what was seen most likely is a fixed
    point of

        p_j <- 1/n sum_i a_ij p_j / sum_k a_ik p_k

    Source: Turnbull, The empirical distribution function with arbitrarily grouped,
    censored and truncated data (Journal of the Royal Statistical Society B 1976).
    """
    ends = np.unique(np.concatenate([low, high]))
    before, after = ends[:-1], ends[1:]
    inside = (before >= low[:, None]) & (after <= high[:, None])
    chance = np.full(after.size, 1 / after.size)
    for _ in range(ROUNDS):
        mine = inside * chance
        chance = (mine / mine.sum(axis=1, keepdims=True)).mean(axis=0)
    return after, chance


def median_of(low: np.ndarray, high: np.ndarray) -> float:
    """Returns the upper end of the piece in which half of the chance is reached."""
    after, chance = estimate(low, high)
    return float(after[np.flatnonzero(np.cumsum(chance) >= 0.5 - 1e-9)[0]])


def test_the_estimate_by_hand() -> None:
    """Of (0, 1], (1, 2] and (0, 2] the last is shared evenly: p = 1/2, 1/2."""
    after, chance = estimate(np.array([0.0, 1, 0]), np.array([1.0, 2, 2]))
    np.testing.assert_array_equal(after, [1, 2])
    np.testing.assert_allclose(chance, [0.5, 0.5])
    # Who ended at 1 unseen arrives with those seen later: p = 1/3, 2/3.
    _, chance = estimate(np.array([0.0, 1, 1]), np.array([1.0, 2, np.inf]))
    np.testing.assert_allclose(chance, [1 / 3, 2 / 3, 0], atol=1e-3)


@pytest.mark.parametrize("replicates", [3, 6, 9])
@pytest.mark.parametrize("end", [np.inf, 4.0])
def test_medians_are_those_of_the_estimate(replicates: int, end: float) -> None:
    """Runs evaluated at the same times, of which those past the end are not seen."""
    generator = np.random.default_rng(replicates)
    for _ in range(20):
        times = generator.lognormal(1.0, 0.6, replicates)
        high = np.where(times > end, np.inf, np.ceil(times))
        low = np.where(times > end, end, np.ceil(times) - 1)
        # Where exactly half have arrived, its median is that time or any later one.
        known = np.isfinite(high).sum() > replicates / 2
        expected = median_of(low, high) if known else np.inf
        assert median_time(low, high).mean == expected


def test_runs_that_ended_early_do_not_make_medians_smaller() -> None:
    """Why they ended is not known, so that nothing is assumed of what came after."""
    generator = np.random.default_rng(1)
    for _ in range(20):
        times, ends = generator.lognormal(1.0, 0.6, 7), generator.integers(1, 9, 7)
        high = np.where(times > ends, np.inf, np.ceil(times))
        low = np.where(times > ends, ends, np.ceil(times) - 1)
        assert median_time(low, high).mean >= median_of(low, high)
