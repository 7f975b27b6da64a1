import heapq
import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from stalesim.analysis import theory
from stalesim.analysis.theory import gossip, queues
from tests.oracles import queues as oracles


def _staleness(delays: Iterator[float], num_jobs: int, num: int, buffer: int) -> list:
    """Replays jobs that are replaced at once, a commit every `buffer` arrivals."""
    pending = [(next(delays), job, 0) for job in range(num_jobs)]
    heapq.heapify(pending)
    staleness = []
    for arrival in range(num):
        now, job, read_version = heapq.heappop(pending)
        staleness.append(arrival // buffer - read_version)
        version = (arrival + 1) // buffer
        heapq.heappush(pending, (now + next(delays), job, version))
    return staleness


def test_equal_constant_delays_have_exact_staleness() -> None:
    found = _staleness(iter(lambda: 1.0, None), num_jobs=7, num=50, buffer=1)
    assert found == [*range(7), *[int(theory.mean_staleness_in_flight(7))] * 43]


@pytest.mark.parametrize("buffer", [1, 4, 13])
def test_mean_staleness_of_buffered_commits(buffer: int) -> None:
    generator = np.random.default_rng(0)
    num = 13 * 4 * 1000
    delays = iter(generator.lognormal(size=num + 10).tolist())
    found = _staleness(delays, num_jobs=10, num=num, buffer=buffer)
    # Each commit ages nine jobs by one, exactly; what the ten jobs in flight at the end
    # have aged is not counted: at most ten times the largest staleness.
    error = 10 * (max(found) + 1) / num
    expected = theory.mean_staleness_buffered(10, buffer)
    assert expected == 9 / buffer
    assert np.mean(found) == pytest.approx(expected, abs=error)


def test_mean_staleness_of_exponential_clients() -> None:
    rates = np.array([1.0, 2.0, 5.0])
    means = theory.mean_staleness_exponential(rates)
    np.testing.assert_allclose(means, [7, 3, 0.6], rtol=1e-15)
    for client in range(3):
        law = theory.exponential_staleness_law(rates, client)
        assert means[client] == pytest.approx(law.mean())
        p = rates[client] / 8
        assert law.var() == pytest.approx((1 - p) / p**2)
        np.testing.assert_allclose(
            law.pmf([0, 1, 4]), p * (1 - p) ** np.array([0, 1, 4])
        )


def test_exponential_order_statistic() -> None:
    assert oracles.exponential_order_statistic(2.0, 4, 4) == pytest.approx(25 / 12 / 2)
    assert oracles.exponential_order_statistic(1.0, 10, 1) == pytest.approx(0.1)
    for t in (1, 4, 6):
        assert oracles.exponential_order_statistic(3.0, 6, t) == pytest.approx(
            theory.expected_order_statistic([stats.expon(scale=1 / 3)] * 6, t),
            rel=1e-12,
        )


def test_laws_with_negative_values_are_refused() -> None:
    with pytest.raises(ValueError, match="delays must be >= 0"):
        theory.expected_order_statistic([stats.norm()], 1)


def test_order_statistics_of_unequal_uniforms_by_hand() -> None:
    # U(0, 1) and U(0, 2): the larger is below x with probability x * x/2 up to 1 and
    # x/2 above: 1 - 1/6 and then 1 - 3/4.
    laws = [stats.uniform(0, 1), stats.uniform(0, 2)]
    assert theory.expected_maximum(laws) == pytest.approx(5 / 6 + 1 / 4, rel=1e-12)
    found = theory.expected_order_statistic(laws, 1)
    assert found == pytest.approx(1.5 - (5 / 6 + 1 / 4), rel=1e-12)


def test_rates_and_shares_of_clients() -> None:
    assert theory.asynchronous_throughput([0.5, 2.0, 4.0]) == 2.75
    assert theory.asynchronous_throughput(0.25) == 4
    assert theory.compute_utilisation(3.0, 4.0) == 0.75
    with pytest.raises(
        ValueError, match="mean_compute_s must be between 0 and 1, got 2"
    ):
        theory.compute_utilisation(2, 1)
    assert theory.availability(3.0, 1.0) == 0.75
    assert theory.availability(3.0, 0.0) == 1


@pytest.mark.parametrize("num_clients", [1, 2, 5, 400])
def test_repairman_identities(num_clients: int) -> None:
    found = queues.repairman(num_clients, 0.25, 2.0)
    law = found.num_present_law
    assert law.sum() == pytest.approx(1)
    # Balance across every cut between n and n + 1 present.
    up = (num_clients - np.arange(num_clients)) * 0.25 * law[:-1]
    np.testing.assert_allclose(up, 2.0 * law[1:], rtol=1e-9, atol=1e-300)
    # Little's law of a whole cycle, away and at the server.
    cycle = 1 / 0.25 + found.mean_sojourn_s
    assert found.throughput * cycle == pytest.approx(num_clients)
    assert found.mean_num_present == pytest.approx(
        found.throughput * found.mean_sojourn_s
    )


def test_repairman_limits() -> None:
    alone = queues.repairman(1, 0.25, 2.0)
    assert alone.mean_num_present == pytest.approx(0.25 / 2.25)
    assert alone.mean_wait_s == pytest.approx(0, abs=1e-15)
    two = queues.repairman(2, 1.0, 1.0)  # weights 1, 2, 2
    np.testing.assert_allclose(two.num_present_law, [0.2, 0.4, 0.4], rtol=1e-14)
    # Many clients keep the server busy: K - mu / lambda of them wait.
    full = queues.repairman(10_000, 1.0, 10.0)
    assert full.throughput == pytest.approx(10)
    assert full.mean_num_present == pytest.approx(10_000 - 10)
    # Many rare clients are Poisson arrivals.
    open_queue = oracles.single_server(0.5, 1.0, 1.0)
    rare = queues.repairman(100_000, 0.5 / 100_000, 1.0)
    assert rare.mean_wait_s == pytest.approx(open_queue.mean_wait_s, rel=1e-4)


P = [0.2, 0.3, 0.5]
MU = [1.0, 0.5, 4.0]


def _network_by_enumeration(num_jobs: int) -> np.ndarray:
    """Returns mean numbers present from the product form over all states."""
    loads = np.array(P) / np.array(MU)
    bars = combinations(range(num_jobs + 2), 2)
    states = np.array([[a, b - a - 1, num_jobs + 1 - b] for a, b in bars])
    weights = np.prod(loads**states, axis=1)
    return weights @ states / weights.sum()


@pytest.mark.parametrize("num_jobs", [1, 2, 6, 15])
def test_closed_network_against_its_product_form(num_jobs: int) -> None:
    found = queues.closed_network(num_jobs, P, MU)
    expected = _network_by_enumeration(num_jobs)
    np.testing.assert_allclose(found.mean_num_present, expected, rtol=1e-12)
    fewer = _network_by_enumeration(num_jobs - 1)
    np.testing.assert_allclose(found.mean_delay, fewer / P, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("num_jobs", [1, 2, 50])
def test_closed_network_identities(num_jobs: int) -> None:
    found = queues.closed_network(num_jobs, P, MU)
    assert found.mean_num_present.sum() == pytest.approx(num_jobs)
    assert np.dot(P, found.mean_delay) == pytest.approx(
        theory.mean_staleness_in_flight(num_jobs)
    )
    # Equal clients: m / (m + n - 1) of each of n servers is busy.
    equal = queues.closed_network(num_jobs, np.full(4, 0.25), np.full(4, 3.0))
    assert equal.throughput == pytest.approx(4 * 3 * num_jobs / (num_jobs + 3))
    np.testing.assert_allclose(equal.mean_delay, num_jobs - 1)


def test_closed_network_limits() -> None:
    # The largest p / mu is the bottleneck of many jobs.
    found = queues.closed_network(5000, P, MU)
    assert found.throughput == pytest.approx(0.5 / 0.3)
    # Two queues in turn are M/M/1/m: a geometric number at either.
    two = queues.closed_network(3, [0.5, 0.5], [1.0, 2.0])
    weights = 0.5 ** np.arange(4)
    expected = weights @ np.arange(4) / weights.sum()
    assert two.mean_num_present[1] == pytest.approx(expected)
    with pytest.raises(ValueError, match="routing must be 2 positive probabilities"):
        queues.closed_network(3, [0.5, 0.6], [1.0, 2.0])


def test_bounded_retries() -> None:
    # 1/2, then 1/4, 1/8 after one and two timeouts; 1/8 never.
    found = oracles.bounded_retries(0.5, 2, timeout_s=4.0, mean_trip_s=1.0)
    expected = 7 / 8, 1 + 1 / 2 + 1 / 4, 1 + 4 * (1 / 4 + 2 / 8) / (7 / 8)
    assert found == pytest.approx(expected)


def _ring(num_workers: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % num_workers) for i in range(num_workers)]


def _torus(side: int) -> list[tuple[int, int]]:
    down = [(i, (i + side) % side**2) for i in range(side**2)]
    right = [(i, i - i % side + (i + 1) % side) for i in range(side**2)]
    return down + right


def _equal_weights(num_workers: int, edges: list[tuple[int, int]]) -> np.ndarray:
    """Returns the mean over a worker and its neighbours, on a regular graph."""
    weights = np.eye(num_workers)
    for i, j in edges:
        weights[i, j] = weights[j, i] = 1
    return weights / weights.sum(axis=1, keepdims=True)


def test_spectral_gaps_of_regular_graphs() -> None:
    ring = _equal_weights(10, _ring(10))
    expected = (1 + 2 * math.cos(2 * math.pi / 10)) / 3
    assert gossip.second_eigenvalue_modulus(ring) == pytest.approx(expected)
    assert gossip.spectral_gap(ring) == pytest.approx(1 - expected)
    torus = _equal_weights(36, _torus(6))
    expected = (3 + 2 * math.cos(2 * math.pi / 6)) / 5
    assert gossip.second_eigenvalue_modulus(torus) == pytest.approx(expected)
    assert gossip.spectral_gap(np.full((8, 8), 1 / 8)) == pytest.approx(1)
    assert gossip.spectral_gap(np.ones((1, 1))) == 1


def test_spectral_gaps_without_consensus() -> None:
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])  # the eigenvalue is -1
    assert gossip.spectral_gap(swap) == pytest.approx(0)
    assert gossip.spectral_gap(np.eye(3)) == pytest.approx(0)
    cycle = np.roll(np.eye(5), 1, axis=1)  # complex eigenvalues of modulus 1
    assert gossip.spectral_gap(cycle) == pytest.approx(0)
    with pytest.raises(ValueError, match="rows of sum 1"):
        gossip.spectral_gap(np.full((2, 2), 0.4))


@pytest.mark.parametrize(
    ("num_workers", "edges", "second"),
    [
        (8, list(combinations(range(8), 2)), 1 - 1 / 7),
        (9, _ring(9), 1 - (1 - math.cos(2 * math.pi / 9)) / 9),
        (25, _torus(5), 1 - (1 - math.cos(2 * math.pi / 5)) / 50),
    ],
    ids=["complete", "ring", "torus"],
)
def test_random_edge_gossip(
    num_workers: int, edges: list[tuple[int, int]], second: float
) -> None:
    expected = gossip.expected_pairwise_averaging(num_workers, edges)
    np.testing.assert_allclose(expected.sum(axis=0), 1)
    found = gossip.second_eigenvalue_modulus(expected)
    assert found == pytest.approx(second, rel=1e-9)
    # The mean of the matrices of all exchanges.
    total = np.zeros((num_workers, num_workers))
    for i, j in edges:
        exchange = np.eye(num_workers)
        exchange[np.ix_([i, j], [i, j])] = 0.5
        total += exchange
    np.testing.assert_allclose(expected, total / len(edges), atol=1e-15)


@pytest.mark.parametrize("edges", [[(0, 0)], [(0, 3)], [(-1, 0)], []])
def test_impossible_edges(edges: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match=r"edges must (be pairs|hold a pair)"):
        gossip.expected_pairwise_averaging(3, edges)


@pytest.mark.parametrize("t", [1, 2, 500, 50_000, 99_999, 100_000])
def test_order_statistics_of_many_like_clients(t: int) -> None:
    # The t-th smallest of n uniform numbers has the mean t / (n + 1).
    found = theory.expected_order_statistic([stats.uniform(0, 1)], t, [100_000])
    assert found == pytest.approx(t / 100_001, rel=1e-8)
    found = theory.expected_order_statistic([stats.expon(scale=2)], t, [100_000])
    expected = oracles.exponential_order_statistic(0.5, 100_000, t)
    assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("t", [1, 3, 5])
def test_counts_stand_for_laws_written_out(t: int) -> None:
    one, other = stats.gamma(2.0), stats.uniform(0.5, 2)
    expected = theory.expected_order_statistic([one, one, one, other, other], t)
    found = theory.expected_order_statistic([one, other], t, [3, 2])
    assert found == pytest.approx(expected, rel=1e-10)
    with pytest.raises(ValueError, match="at most 300 clients of several laws"):
        theory.expected_order_statistic([one, other], 400, [300, 200])
    with pytest.raises(ValueError, match="at most 300 different laws"):
        theory.expected_maximum([stats.expon(scale=k) for k in range(1, 302)])
    # The largest of many of two laws is that of the one with the longer tail.
    long = theory.expected_maximum([stats.expon(scale=3)], [1_000_000])
    both = theory.expected_maximum(
        [stats.expon(scale=3), stats.expon(scale=0.1)], [1_000_000, 1_000_000]
    )
    assert both == pytest.approx(long, rel=1e-9)
