"""Medians of times to a target against the nonparametric estimate of such times."""

import numpy as np
import pytest

from stalesim.analysis.statistics import median_time
from tests.reference import turnbull_twin as twin


def test_the_estimate_by_hand() -> None:
    """Of (0, 1], (1, 2] and (0, 2] the last is shared evenly: p = 1/2, 1/2."""
    after, chance = twin.estimate(np.array([0.0, 1, 0]), np.array([1.0, 2, 2]))
    np.testing.assert_array_equal(after, [1, 2])
    np.testing.assert_allclose(chance, [0.5, 0.5])
    # Who ended at 1 unseen arrives with those seen later: p = 1/3, 2/3.
    _, chance = twin.estimate(np.array([0.0, 1, 1]), np.array([1.0, 2, np.inf]))
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
        expected = twin.median(low, high) if known else np.inf
        assert median_time(low, high).mean == expected


def test_runs_that_ended_early_do_not_make_medians_smaller() -> None:
    """Why they ended is not known, so that nothing is assumed of what came after."""
    generator = np.random.default_rng(1)
    for _ in range(20):
        times, ends = generator.lognormal(1.0, 0.6, 7), generator.integers(1, 9, 7)
        high = np.where(times > ends, np.inf, np.ceil(times))
        low = np.where(times > ends, ends, np.ceil(times) - 1)
        assert median_time(low, high).mean >= twin.median(low, high)
