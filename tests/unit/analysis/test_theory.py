"""Closed forms against sums, integrals and limits worked out by hand.

`tests/verification` compares them with worlds that are played, and with Ciw.
"""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from stalesim.analysis import theory
from stalesim.analysis.theory import Lattice, gossip, queues
from tests.oracles import queues as oracles


def _poisson(num_clients: int) -> list[Lattice]:
    return [
        Lattice(stats.poisson(2 * m), 1 / (2 * num_clients))
        for m in range(1, num_clients + 1)
    ]


def _exponential(rates: list[float]) -> list[Any]:
    return [stats.expon(scale=1 / rate) for rate in rates]


def test_shares_and_rates_of_clients() -> None:
    of_gaps = theory.activation_from_rates(1 / np.arange(1, 5))
    np.testing.assert_allclose(of_gaps, [0.48, 0.24, 0.16, 0.12], rtol=1e-15)
    assert theory.asynchronous_throughput([0.5, 2.0, 4.0]) == 2.75
    assert theory.asynchronous_throughput(0.25) == 4
    assert theory.compute_utilisation(3.0, 4.0) == 0.75
    with pytest.raises(ValueError, match=r"mean_compute_s must be .* 0 and 1, got 2"):
        theory.compute_utilisation(2, 1)
    assert theory.availability(3.0, 1.0) == 0.75
    assert theory.availability(3.0, 0.0) == 1


def test_laws_of_ages_and_staleness() -> None:
    law = theory.embedding_age_law(0.03)
    np.testing.assert_allclose(law.pmf(np.arange(4)), [0, *0.03 * 0.97 ** np.arange(3)])
    rates = np.array([1.0, 2.0, 5.0])
    np.testing.assert_allclose(theory.mean_staleness_exponential(rates), [7, 3, 0.6])
    laws = [theory.exponential_staleness_law(rates, client) for client in range(3)]
    for p, law in zip(rates / 8, laws, strict=True):
        ages = np.array([0, 1, 4])
        np.testing.assert_allclose(law.pmf(ages), p * (1 - p) ** ages)
    # Weighted by shares of commits the clients' means are C - 1.
    shares = theory.activation_from_rates(rates)
    whole = shares @ [law.mean() for law in laws]
    assert whole == pytest.approx(theory.mean_staleness_in_flight(3)) == 2
    assert theory.mean_staleness_in_flight(20, 3) == 18
    assert theory.mean_staleness_buffered(10, 4) == 9 / 4
    assert theory.mean_staleness_buffered(6, 5, 5) == 1 / 5


def test_poisson_maximum_by_a_direct_sum() -> None:
    # P(max <= k) is a product of partial sums of e^-l l^j / j!
    def cdf(k: int, mean: int) -> float:
        return math.fsum(
            math.exp(-mean) * mean**j / math.factorial(j) for j in range(k + 1)
        )

    direct = math.fsum(
        1 - math.prod(cdf(k, 2 * m) for m in range(1, 8)) for k in range(80)
    )
    # 80 differences from one, each rounded at 1e-16
    assert theory.expected_maximum(_poisson(7)) == pytest.approx(direct / 14, rel=1e-13)
    assert theory.expected_maximum(_poisson(7)) == pytest.approx(1.108540538, rel=1e-9)


def test_unequal_exponentials_by_inclusion_and_exclusion() -> None:
    rates = [1.0, 2.0, 5.0]
    laws = _exponential(rates)
    pairs = [1 / 3, 1 / 6, 1 / 7]
    singles = math.fsum(1 / rate for rate in rates)
    longest = singles - sum(pairs) + 1 / 8
    middle = sum(pairs) - 2 / 8
    assert theory.expected_maximum(laws) == pytest.approx(longest, rel=1e-12)
    found = theory.expected_order_statistic(laws, 2)
    assert found == pytest.approx(middle, rel=1e-12)


@pytest.mark.parametrize(
    "laws",
    [
        [stats.uniform(0, 1), stats.uniform(0.5, 2), stats.lognorm(1.5)],
        [stats.gamma(0.1), stats.pareto(2.5), Lattice(stats.poisson(3), 0.25, 0.1)],
        [
            Lattice(stats.poisson(1), 0.1),
            Lattice(stats.geom(0.3), 0.3),
            stats.randint(2, 9),
        ],
    ],
    ids=["continuous", "mixed", "lattice"],
)
def test_order_statistics_add_up_to_the_means(laws: list[Any]) -> None:
    total = math.fsum(theory.expected_order_statistic(laws, t) for t in (1, 2, 3))
    means = math.fsum(float(law.mean()) for law in laws)
    assert total == pytest.approx(means, rel=1e-8)


def test_order_statistics_of_other_laws() -> None:
    uniform = [stats.uniform(5, 2)] * 4
    assert theory.expected_order_statistic(uniform, 3) == pytest.approx(5 + 2 * 3 / 5)
    constant = Lattice(stats.randint(0, 1), shift=1.5)
    assert theory.expected_maximum([constant, constant]) == 1.5
    # max(1, exponential) = 1 + e^-1
    one = Lattice(stats.randint(0, 1), shift=1.0)
    found = theory.expected_maximum([one, stats.expon()])
    assert found == pytest.approx(1 + math.exp(-1), rel=1e-12)
    # the fastest of three Pareto(1.5) laws is Pareto(4.5)
    pareto = [stats.pareto(1.5)] * 3
    found = theory.expected_order_statistic(pareto, 1)
    assert found == pytest.approx(4.5 / 3.5, rel=1e-9)
    # two dice
    dice = [stats.randint(1, 7)] * 2
    assert theory.expected_maximum(dice) == pytest.approx(161 / 36, rel=1e-14)


@pytest.mark.parametrize(
    ("laws", "t", "message"),
    [
        ([stats.expon()], 0, "t must be between 1 and 1, got 0"),
        ([stats.expon()], 2, "t must be between 1 and 1, got 2"),
        ([stats.norm()], 1, "delays must be >= 0, got a law that begins at -inf"),
        ([Lattice(stats.poisson(1), 1.0, -1.0)], 1, "delays must be >= 0"),
        ([stats.pareto(0.9)], 1, "expected delay must be finite"),
        ([stats.zipf(1.5)], 1, "fewer than 2000000 values"),
    ],
)
def test_impossible_expectations(laws: list[Any], t: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        theory.expected_order_statistic(laws, t)


def test_t_synchronous_periods() -> None:
    poisson = _poisson(7)
    # printed from one simulation: 1 % of it is a generous sampling error
    assert theory.t_synchronous_period(poisson, 1) == pytest.approx(0.055, abs=5e-4)
    assert theory.t_synchronous_period(poisson, 7) == pytest.approx(1.107, rel=0.01)
    with pytest.raises(ValueError, match=r"t must be 1 or 7 .* got 4; simulate it"):
        theory.t_synchronous_period(poisson, 4)
    # without memory every t is exact
    laws = _exponential([1, 1 / 2, 1 / 3, 1 / 4])
    for t, simulated in ((1, 0.479), (2, 1.229), (3, 2.551), (4, 5.694)):
        assert theory.t_synchronous_period(laws, t) == pytest.approx(
            simulated, rel=0.01
        )
    late = [stats.expon(loc=1)] * 3
    with pytest.raises(ValueError, match="laws with a memory"):
        theory.t_synchronous_period(late, 2)


@pytest.mark.parametrize("exponent", [1.1, 1.5, 2.1])
def test_rounds_of_heavy_tails_of_finite_mean_have_a_length(exponent: float) -> None:
    """n B(n, 1 - 1/b) is the mean largest of n Pareto variables (Malik, 1966)."""
    exact = 10 * special.beta(10, 1 - 1 / exponent)
    found = theory.expected_maximum([stats.pareto(exponent)], [10])
    assert found == pytest.approx(exact, rel=1e-10)
    with pytest.raises(ValueError, match="must be finite"):
        theory.expected_maximum([stats.pareto(0.9)], [10])


def test_a_round_of_unequal_log_normals_has_a_length() -> None:
    laws = [stats.lognorm(1.5, scale=scale) for scale in (1, 10, 100, 1000)]
    at = np.exp(np.linspace(-20, 40, 60_001))
    longer = 1 - np.prod([law.cdf(at) for law in laws], axis=0)
    whole = np.trapezoid(longer * at, np.log(at))
    assert theory.expected_maximum(laws) == pytest.approx(whole, rel=1e-6)


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
    # Many clients keep the server busy: K - mu / lambda of them wait.
    full = queues.repairman(10_000, 1.0, 10.0)
    assert full.throughput == pytest.approx(10)
    assert full.mean_num_present == pytest.approx(10_000 - 10)
    # Many rare clients are Poisson arrivals.
    rare = queues.repairman(100_000, 0.5 / 100_000, 1.0)
    waits = oracles.single_server(0.5, 1.0, 1.0).mean_wait_s
    assert rare.mean_wait_s == pytest.approx(waits, rel=1e-4)


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


def test_closed_network_limits() -> None:
    # The largest p / mu is the bottleneck of many jobs.
    found = queues.closed_network(5000, P, MU)
    assert found.throughput == pytest.approx(0.5 / 0.3)
    # Equal clients: m / (m + n - 1) of each of n servers is busy.
    equal = queues.closed_network(50, np.full(4, 0.25), np.full(4, 3.0))
    assert equal.throughput == pytest.approx(4 * 3 * 50 / 53)
    np.testing.assert_allclose(equal.mean_delay, 49)
    with pytest.raises(ValueError, match="routing must be 2 positive probabilities"):
        queues.closed_network(3, [0.5, 0.6], [1.0, 2.0])


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


def test_spectral_gaps() -> None:
    ring = (2 - 2 * math.cos(2 * math.pi / 10)) / 3
    assert gossip.spectral_gap(_equal_weights(10, _ring(10))) == pytest.approx(ring)
    torus = (2 - 2 * math.cos(2 * math.pi / 6)) / 5
    assert gossip.spectral_gap(_equal_weights(36, _torus(6))) == pytest.approx(torus)
    assert gossip.spectral_gap(np.full((8, 8), 1 / 8)) == pytest.approx(1)
    assert gossip.spectral_gap(np.ones((1, 1))) == 1
    # Without consensus: an eigenvalue of -1, of 1, and complex ones of modulus 1.
    apart = np.array([[0.0, 1], [1, 0]]), np.eye(3), np.roll(np.eye(5), 1, axis=1)
    for matrix in apart:
        assert gossip.spectral_gap(matrix) == pytest.approx(0)
    with pytest.raises(ValueError, match="rows of sum 1"):
        gossip.spectral_gap(np.full((2, 2), 0.4))


@pytest.mark.parametrize(
    ("num_workers", "edges", "gap"),
    [
        (8, list(combinations(range(8), 2)), 1 / 7),
        (9, _ring(9), (1 - math.cos(2 * math.pi / 9)) / 9),
        (25, _torus(5), (1 - math.cos(2 * math.pi / 5)) / 50),
    ],
    ids=["complete", "ring", "torus"],
)
def test_random_edge_gossip(
    num_workers: int, edges: list[tuple[int, int]], gap: float
) -> None:
    expected = gossip.expected_pairwise_averaging(num_workers, edges)
    assert gossip.spectral_gap(expected) == pytest.approx(gap, rel=1e-9)
    total = np.zeros((num_workers, num_workers))  # of the matrices of all exchanges
    for i, j in edges:
        exchange = np.eye(num_workers)
        exchange[np.ix_([i, j], [i, j])] = 0.5
        total += exchange
    np.testing.assert_allclose(expected, total / len(edges), atol=1e-15)


@pytest.mark.parametrize("edges", [[(0, 0)], [(0, 3)], [(-1, 0)], []])
def test_impossible_edges(edges: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match=r"edges must (be pairs|hold a pair)"):
        gossip.expected_pairwise_averaging(3, edges)
