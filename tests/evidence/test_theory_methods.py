"""Closed forms of methods with proved times, against brute force and known values."""

import numpy as np
import pytest

from evidence.studies.observatory import closed_forms as methods


def test_queues_of_routed_tasks_are_those_of_the_specification() -> None:
    """Source: methods.md, section 9: four clients, six tasks."""
    rates, shares = np.array([4, 2, 1, 0.5]), np.array([0.4, 0.3, 0.2, 0.1])
    found = methods.routed_tasks(rates, shares, 6)
    assert found.throughput == pytest.approx(3.883, abs=5e-4)
    np.testing.assert_allclose(found.delays, [1.350, 3.381, 8.614, 17.228], atol=5e-4)
    assert shares @ found.delays == pytest.approx(5)


def test_a_closed_network_of_two_queues_is_solved_exactly() -> None:
    """Two clients and m tasks are a birth and death chain of the tasks at the first."""
    rates, shares, tasks = np.array([1.0, 3.0]), np.array([0.3, 0.7]), 5
    weights = [
        (shares[0] / rates[0]) ** k * (shares[1] / rates[1]) ** (tasks - k)
        for k in range(tasks + 1)
    ]
    chance = np.array(weights) / np.sum(weights)
    wanted = rates[0] * (1 - chance[0]) + rates[1] * (1 - chance[-1])
    found = methods.routed_tasks(rates, shares, tasks)
    assert found.throughput == pytest.approx(wanted)


@pytest.mark.parametrize("wasted", [0, 1])
def test_enough_jobs_are_done_at_the_least_such_moment(wasted: int) -> None:
    tau = np.array([0.5, 1.1, 2.7])
    start, count = 3.0, 7

    def finish(client: int, start: float, work: float) -> float:
        return start + float(tau[client]) * work

    def done(end: float) -> int:
        jobs = np.floor((end - start) / tau + 1e-12) - wasted
        return int(np.maximum(jobs, 0).sum())

    end = methods.enough(finish, 3, start, count, wasted)
    assert done(end) >= count
    assert done(end - 1e-6) < count


def test_everyone_s_mean_count_is_reached_at_the_least_such_moment() -> None:
    tau = np.array([0.5, 1.1, 2.7])

    def finish(client: int, start: float, work: float) -> float:
        return start + float(tau[client]) * work

    def mean(end: float) -> float:
        counts = np.floor(end / tau + 1e-12)
        return 3 / (1 / counts).sum() if counts.all() else 0.0

    end = methods.everyone_and_mean(finish, 3, 0.0, 2.5)
    assert mean(end) >= 2.5 > mean(end - 1e-6)


def test_bounds_on_rounds_by_hand() -> None:
    tau = np.array([1.0, 3.0])
    np.testing.assert_allclose(methods.harmonic_of_fastest(tau), [1, 1.5])
    assert methods.rennala_round(tau, 2) == pytest.approx(3)  # 1 (2 + 1)
    assert methods.rennala_round(tau, 8) == pytest.approx(7.5)  # 0.75 (8 + 2)
    assert methods.malenia_round(tau, 2.5) == pytest.approx(8)
    assert methods.ringmaster_span(tau, 1) == pytest.approx(4)  # 2 * 1 * (1 + 1)
    assert methods.ringleader_round(tau) == 6
    assert methods.ringleader_batch(tau) == pytest.approx(0.75)
    assert methods.mindflayer_round([2, 3], [1.5, 0.5]) == 3
