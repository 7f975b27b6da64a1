"""Exponents of largest stable and best swept values, against what they are made of."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

from analysis.bounds import AT_LEAST, AT_MOST, EXACT
from analysis.claims.exponents import Scaling, best, largest_stable
from analysis.claims.measured import Measured, measure
from simulator.trace import StudyError
from tests.unit.analysis.studies import Grid

RATE, CLIENTS = "algorithm.step_size", "problem.partition.clients"
RATES = [2.0**-k for k in range(10)][::-1]
AT = (1, 2, 4, 8)
WHERE = (RATE, CLIENTS, "test_accuracy")


def measured(
    border: Any, lost: tuple[tuple[float, int], ...] = (), replicates: int = 3
) -> Measured:
    """Returns a study in which accuracy grows with the rate up to a border, then is 0.

    Args:
        border: Function of the clients and the replicate.
        lost: Rates and clients at which all runs diverged.
        replicates: Number of replicates.
    """
    points = [
        (
            "a",
            {CLIENTS: at, RATE: rate},
            [
                0.5 + 0.01 * k if rate <= border(at, replicate) else 0.0
                for replicate in range(replicates)
            ],
        )
        for at in AT
        for k, rate in enumerate(RATES)
    ]
    found = Grid(points)
    for run in found.manifest["runs"]:
        if (run["parameters"][RATE], run["parameters"][CLIENTS]) in lost:
            run["stop"] = "diverged"
    return measure(found, [], ["test_accuracy"])


def test_a_power_is_found_to_the_last_digit() -> None:
    of = measured(lambda at, replicate: 0.5 / at)
    for one in (largest_stable(of, "a", *WHERE, 0.1), best(of, "a", *WHERE)):
        np.testing.assert_allclose(one.values, [[0.5, 0.25, 0.125, 0.0625]] * 3)
        assert (one.bounds == EXACT).all()
        np.testing.assert_allclose(one.exponent, [-1, -1, -1], atol=1e-12)
        np.testing.assert_allclose(one.means, one.values[0])


def test_replicates_make_the_interval() -> None:
    rng = np.random.default_rng(0)
    noise = 2.0 ** rng.integers(-1, 2, (5, len(AT)))
    of = measured(lambda at, r: 0.25 / at * noise[r, AT.index(at)], replicates=5)
    one = largest_stable(of, "a", *WHERE, 0.1)
    slopes = [np.polyfit(np.log(AT), np.log(row), 1)[0] for row in one.values]
    half = scipy.stats.t.ppf(0.975, 4) * scipy.stats.sem(slopes)
    mean = np.mean(slopes)
    np.testing.assert_allclose(one.exponent, [mean, mean - half, mean + half])
    np.testing.assert_allclose(one.values, 0.25 / np.array(AT) * noise)


def test_beyond_the_first_that_diverges_nothing_counts() -> None:
    of = measured(lambda at, r: 0.5, lost=((0.125, 2), (RATES[0], 8)))
    one = largest_stable(of, "a", *WHERE, 0.1)
    np.testing.assert_allclose(one.values[0], [0.5, 0.0625, 0.5, RATES[0]])
    np.testing.assert_array_equal(one.bounds[0], [EXACT, EXACT, EXACT, AT_MOST])
    # The best one may well lie beyond.
    np.testing.assert_allclose(best(of, "a", *WHERE).values[0], 0.5)


@pytest.mark.parametrize(
    ("bound", "low", "high"),
    [((0, 0, 0, AT_LEAST), False, True), ((AT_LEAST, 0, 0, 0), True, False)],
)
def test_an_interval_is_open_where_a_value_may_be(
    bound: tuple[int, ...], low: bool, high: bool
) -> None:
    values = np.array([[1.0, 0.6, 0.25, 0.125], [1.0, 0.5, 0.25, 0.125]])
    one = Scaling(np.array(AT, float), values, np.array([bound, (0, 0, 0, 0)]))
    found = one.exponent
    assert (found.low == -np.inf, found.high == np.inf) == (low, high)


def test_a_whole_sweep_that_is_stable_bounds_its_end() -> None:
    one = largest_stable(measured(lambda at, r: 8.0), "a", *WHERE, 0.1)
    np.testing.assert_allclose(one.values, 1.0)
    assert (one.bounds == AT_LEAST).all()


def test_other_sweeps_are_refused() -> None:
    of = measured(lambda at, r: 0.5)
    with pytest.raises(StudyError, match=r"is not swept over algorithm\.batch and"):
        best(of, "a", "algorithm.batch", CLIENTS, "test_accuracy")


def test_runs_that_have_not_ended_are_refused() -> None:
    of = measured(lambda at, r: 0.5)
    fewer = of.table.drop(index=len(of.table) - 1)
    rest = (frame.loc[fewer.index] for frame in (of.numbers, of.bounds))
    with pytest.raises(StudyError, match="some runs of a have not ended; resume"):
        best(Measured(fewer, *rest), "a", *WHERE)
