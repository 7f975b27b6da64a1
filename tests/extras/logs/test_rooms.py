"""Rooms: planted ones are found and fitted, and independent clients have none."""

from typing import Any

import numpy as np
import pytest
from scipy import signal

from stalesim.simulator.catalogue.laws.choosing import Series
from stalesim.simulator.extras.logs.rooms import (
    Room,
    chance,
    find_rooms,
    fit_together,
    gain,
)

MEASURED = {"law": "empirical", "path": "x.parquet", "column": "seconds"}
FACTOR = {"law": "empirical", "path": "y.parquet", "column": "factor"}


def memory(n: int, rng: np.random.Generator, correlation: float = 0.9) -> np.ndarray:
    """Returns scores of an autoregression."""
    new = rng.standard_normal(n + 100) * (1 - correlation**2) ** 0.5
    return np.asarray(signal.lfilter([1], [1, -correlation], new))[100:]


def rounds(logs: np.ndarray) -> list[Series]:
    """Returns clients that wait for each other."""
    seconds = np.exp(logs)
    start = np.r_[0.0, np.cumsum(seconds.max(axis=1))[:-1]]
    number = np.arange(len(logs), dtype=np.float64)
    return [Series(start, mine, number) for mine in seconds.T]


def alone(logs: np.ndarray) -> list[Series]:
    """Returns clients that wait for nobody."""
    return [Series(np.r_[0.0, np.cumsum(mine)[:-1]], mine) for mine in np.exp(logs).T]


@pytest.mark.parametrize("played", [rounds, alone])
def test_independent_clients_with_memory_have_no_rooms(played) -> None:
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        logs = np.stack([0.3 * memory(200, rng) for _ in range(6)], axis=1)
        logs += 0.1 * rng.standard_normal(logs.shape)
        found += bool(find_rooms(played(logs))[0])
    # Each has a chance of 1 % at most: two of 20 have one of 0.02.
    assert found < 2


def planted(n: int, seed: int) -> np.ndarray:
    """Returns logarithms of eight clients: 1, 2 and 5 share a factor, 6 and 7 one."""
    rng = np.random.default_rng(seed)
    logs = np.stack([0.15 * memory(n, rng) for _ in range(8)], axis=1)
    logs += 0.15 * rng.standard_normal(logs.shape)
    for clients in ([0, 1, 4], [5, 6]):
        logs[:, clients] += 0.3 * memory(n, rng)[:, None]
    return logs


def test_planted_rooms_are_found_and_taken_out() -> None:
    every = rounds(planted(600, 3))
    clients, shared, rooms = fit_together(every, [MEASURED] * 8, [FACTOR] * 8, 0.0)
    assert {room.clients for room, _, _ in rooms} == {(0, 1, 4), (5, 6)}
    assert shared is None
    for room, slowdown, values in rooms:
        assert slowdown["kind"] == "shared"
        assert slowdown["clients"] == [client + 1 for client in room.clients]
        # 600 steps of correlation 0.9 are worth 32: a spread's error is 12 %.
        assert abs(np.log(np.log(values).std() / 0.3)) < 4 * 0.12
    spreads = [np.log(own.values).std() for own in clients]
    assert max(spreads) < 0.3 < np.log(every[0].seconds).std()


def test_a_room_of_clients_that_wait_for_nobody_is_found() -> None:
    rng = np.random.default_rng(1)
    level, every = 0.5 * memory(400, rng, 0.95), []
    for client in range(6):
        start, seconds, time = [], [], 0.0
        while time < 700:
            took = rng.lognormal(0, 0.2)
            took *= np.exp(level[int(time / 2)]) if client in (2, 3, 5) else 1.0
            start.append(time)
            seconds.append(took)
            time += took
        every.append(Series(np.array(start), np.array(seconds)))
    rooms, more = find_rooms(every)
    assert [room.clients for room in rooms] == [(2, 3, 5)]
    assert more


def test_a_regime_of_two_that_comes_once_is_a_room() -> None:
    rng = np.random.default_rng(2)
    logs = 0.1 * rng.standard_normal((600, 5))
    logs[:, 0] += 0.05 * memory(600, rng)
    shared = 0.15 * memory(600, rng)
    logs[:, 3:] += (shared + 1.5 * (np.arange(600) > 450))[:, None]
    (room,), _ = find_rooms(rounds(logs))
    assert room.clients == (3, 4)


def test_a_chance_is_the_share_of_shifts_and_uniform_if_independent() -> None:
    rng = np.random.default_rng(0)
    one, others = rng.standard_normal(300), rng.standard_normal((300, 400))
    p = chance(one, others)
    # A share of 400 has an error of 0.025 at most.
    for level in (0.1, 0.5, 0.9):
        assert abs((p < level).mean() - level) < 4 * 0.025
    assert chance(one, one[:, None])[0] < 1e-12


def test_the_gain_is_that_of_normal_laws() -> None:
    from scipy import stats

    rng = np.random.default_rng(0)
    learnt = rng.standard_normal((500, 4)) + rng.standard_normal((500, 1))
    new = rng.standard_normal((7, 4))
    found = gain(learnt, new, [Room((0, 2, 3), 0.0, 0.0)])
    pairs: Any = np.corrcoef(learnt[:, [0, 2, 3]].T)
    pairs = pairs[np.triu_indices(3, 1)]
    covariance = np.full((3, 3), pairs.mean())
    np.fill_diagonal(covariance, 1)
    law: Any = stats.multivariate_normal
    wanted = law.logpdf(new[:, [0, 2, 3]], cov=covariance)
    wanted = wanted - stats.norm.logpdf(new[:, [0, 2, 3]]).sum(axis=1)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
