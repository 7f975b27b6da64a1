"""Exponents of largest stable and best swept values, against what they are made of."""

from typing import Any

import numpy as np
import pytest

from evidence.generators.exponents import Scaling, best, largest_stable
from stalesim.analysis.bounds import Sample
from stalesim.analysis.claims.measured import Measured, measure
from stalesim.simulator.files.study import StudyError
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
    one = best(of, "a", *WHERE)
    np.testing.assert_allclose(one.values, [[0.5, 0.25, 0.125, 0.0625]] * 3)
    assert one.beyond == 0
    np.testing.assert_allclose(one.exponent, [-1, -1, -1], atol=1e-12)
    np.testing.assert_allclose(one.means, one.values[0])


def test_the_largest_stable_one_lies_below_the_next_that_was_swept() -> None:
    one = largest_stable(measured(lambda at, r: 0.5 / at), "a", *WHERE, 0.1)
    np.testing.assert_allclose(one.values, [[0.5, 0.25, 0.125, 0.0625]] * 3)
    np.testing.assert_allclose(one.known.low, one.values)
    np.testing.assert_allclose(one.known.high, 2 * one.values)
    # Weights of log 2 times -1.5, -0.5, 0.5, 1.5 over its square times 5: 0.4 each way.
    np.testing.assert_allclose(one.exponent, [-1, -1.4, -0.6], atol=1e-12)


def test_replicates_make_the_interval() -> None:
    rng = np.random.default_rng(0)
    noise = 2.0 ** rng.integers(-1, 2, (5, len(AT)))
    of = measured(lambda at, r: 0.25 / at * noise[r, AT.index(at)], replicates=5)
    one = best(of, "a", *WHERE)
    slopes = [np.polyfit(np.log(AT), np.log(row), 1)[0] for row in one.values]
    expected = [np.median(slopes), min(slopes), max(slopes)]  # of five, the range
    np.testing.assert_allclose(one.exponent, expected)
    np.testing.assert_allclose(one.values, 0.25 / np.array(AT) * noise)


def test_beyond_the_first_that_diverges_nothing_counts() -> None:
    of = measured(lambda at, r: 0.5, lost=((0.125, 2), (RATES[0], 8)))
    one = largest_stable(of, "a", *WHERE, 0.1)
    np.testing.assert_allclose(one.values[0], [0.5, 0.0625, 0.5, RATES[0]])
    np.testing.assert_allclose(one.known.low[0], [0.5, 0.0625, 0.5, 0])
    np.testing.assert_allclose(one.known.high[0], [1, 0.125, 1, RATES[0]])
    assert one.beyond == 3
    # The best one may well lie beyond.
    np.testing.assert_allclose(best(of, "a", *WHERE).values[0], 0.5)


@pytest.mark.parametrize(
    ("bound", "low", "high"),
    [(3, False, True), (0, True, False)],
)
def test_an_interval_is_open_where_a_value_may_be(
    bound: int, low: bool, high: bool
) -> None:
    values = np.array([[1.0, 0.6, 0.25, 0.125], [1.0, 0.5, 0.25, 0.125]])
    most = values.copy()
    most[0, bound] = np.inf
    one = Scaling(np.array(AT, float), values, Sample(values, most))
    found = one.exponent
    assert (found.low == -np.inf, found.high == np.inf) == (low, high)


def test_a_whole_sweep_that_is_stable_bounds_its_end() -> None:
    one = largest_stable(measured(lambda at, r: 8.0), "a", *WHERE, 0.1)
    np.testing.assert_allclose(one.values, 1.0)
    assert np.isinf(one.known.high).all()


def test_other_sweeps_are_refused() -> None:
    of = measured(lambda at, r: 0.5)
    with pytest.raises(StudyError, match=r"is not swept over algorithm\.batch and"):
        best(of, "a", "algorithm.batch", CLIENTS, "test_accuracy")


def test_runs_that_have_not_ended_are_refused() -> None:
    of = measured(lambda at, r: 0.5)
    fewer = of.table.drop(index=len(of.table) - 1)
    rest = (frame.loc[fewer.index] for frame in (of.low, of.high))
    with pytest.raises(StudyError, match="some runs of a have not ended; resume"):
        best(Measured(fewer, *rest), "a", *WHERE)
