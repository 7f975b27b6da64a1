"""Closed forms of queues against Ciw, an independent simulator of queueing networks.

Every figure is a mean over independent replications of one long run each, after a
warm-up, so that its standard error is their standard deviation over the root of their
number. Five of those bound each difference: Student's t with 19 degrees of freedom
exceeds five with probability 8e-5. Each bound must be within 15 % of what it bounds.
"""

import ciw
import numpy as np
import pytest

from stalesim.analysis.theory import queues
from tests.oracles import queues as oracles

REPLICATIONS = 20
PRECISION = 0.15
FOREVER = float("inf")


def closed(num_jobs: int, services: list, servers: list, routing: list) -> ciw.Network:
    """Builds a network in which `num_jobs` begin at the first station and stay."""
    others = len(services) - 1
    return ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([0.0, FOREVER]), *[None] * others],
        batching_distributions=[
            ciw.dists.Deterministic(num_jobs),
            *[ciw.dists.Deterministic(1)] * others,
        ],
        service_distributions=services,
        number_of_servers=servers,
        routing=routing,
    )


def replicate(
    network: ciw.Network, seconds: float, node_class: type = ciw.Node
) -> list[np.ndarray]:
    """Returns station, arrival, wait and exit of every service, by exit, of each run.

    Services that are under way at the end are missing.
    """
    columns = ["node", "arrival_date", "waiting_time", "exit_date"]
    runs = []
    for seed in range(REPLICATIONS):
        ciw.seed(seed)
        simulation = ciw.Simulation(network, node_class=node_class)
        simulation.simulate_until_max_time(seconds)
        records = simulation.get_all_records()
        rows = np.array([[getattr(r, name) for name in columns] for r in records])
        runs.append(rows[np.argsort(rows[:, 3], kind="stable")].T)
    return runs


def agrees(estimates: list[float], expected: float) -> None:
    """Asserts that five standard errors bound the difference, and are small."""
    bound = 5 * np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    assert np.mean(estimates) == pytest.approx(expected, abs=bound)
    assert bound < PRECISION * expected


def test_repairman() -> None:
    clients, away, service = 5, 0.5, 1.5
    network = closed(
        clients,
        [ciw.dists.Exponential(away), ciw.dists.Exponential(service)],
        [FOREVER, 1],
        [[0.0, 1.0], [1.0, 0.0]],
    )
    waits, sojourns, rates, present = [], [], [], []
    # Begins with all away; what is left of that after 50 s, 25 mean times away, is
    # below 1e-6. Arrivals of the last 50 s are left out, whose stays may not be over.
    first, last = 50.0, 1050.0
    for station, arrival, wait, end in replicate(network, last + 50):
        counted = (station == 2) & (first <= arrival) & (arrival < last)
        waits.append(wait[counted].mean())
        sojourns.append((end - arrival)[counted].mean())
        rates.append(counted.sum() / (last - first))
        inside = np.minimum(end, last) - np.maximum(arrival, first)
        stays = np.maximum(inside, 0)[station == 2].sum()
        present.append(stays / (last - first))
    expected = queues.repairman(clients, away, service)
    agrees(waits, expected.mean_wait_s)
    agrees(sojourns, expected.mean_sojourn_s)
    agrees(rates, expected.throughput)
    agrees(present, expected.mean_num_present)


def test_closed_network() -> None:
    jobs, p, rates = 6, [0.2, 0.3, 0.5], [1.0, 0.75, 4.0]
    network = closed(
        jobs, [ciw.dists.Exponential(mu) for mu in rates], [1] * 3, [p] * 3
    )
    # Begins with all jobs at one client, which serves one a second: they are spread
    # within about 10 s. What arrives in the last 100 s is left out, as above.
    first, last = 100.0, 1600.0
    expected = queues.closed_network(jobs, p, rates)
    throughputs, present, delays = [], [], []
    for station, arrival, _, end in replicate(network, last + 100):
        throughputs.append(((first <= end) & (end < last)).sum() / (last - first))
        # Commits of others: after the one that gave the job out, before its own.
        others = np.searchsorted(end, end, "left") - np.searchsorted(
            end, arrival, "right"
        )
        inside = np.maximum(np.minimum(end, last) - np.maximum(arrival, first), 0)
        counted = (first <= arrival) & (arrival < last)
        present.append([inside[station == i].sum() / (last - first) for i in (1, 2, 3)])
        delays.append([others[counted & (station == i)].mean() for i in (1, 2, 3)])
    agrees(throughputs, expected.throughput)
    for client in range(3):
        mine = expected.mean_num_present[client]
        agrees([run[client] for run in present], mine)
        agrees([run[client] for run in delays], expected.mean_delay[client])


def test_single_server() -> None:
    # Gamma services of shape 1/2: variance twice the squared mean.
    rate, shape, scale = 0.5, 0.5, 2.0
    mean, variance = shape * scale, shape * scale**2
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate)],
        service_distributions=[ciw.dists.Gamma(shape, scale)],
        number_of_servers=[1],
    )
    # Begins empty; the relaxation time at this load is about
    # E[S] (1 + 2) / (1 - sqrt(rho))^2 / 2 < 20 s, of which the first 200 s are ten.
    first, last = 200.0, 8200.0
    waits, present = [], []
    for _, arrival, wait, end in replicate(network, last + 200):
        counted = (first <= arrival) & (arrival < last)
        waits.append(wait[counted].mean())
        inside = np.maximum(np.minimum(end, last) - np.maximum(arrival, first), 0)
        present.append(inside.sum() / (last - first))
    expected = oracles.single_server(rate, mean, variance)
    agrees(waits, expected.mean_wait_s)
    agrees(present, expected.mean_num_present)


def test_processor_sharing() -> None:
    # The same services, shared: the mean depends on nothing but their mean.
    rate, shape, scale = 0.5, 0.5, 2.0
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate)],
        service_distributions=[ciw.dists.Gamma(shape, scale)],
        number_of_servers=[FOREVER],
        ps_thresholds=[1],
    )
    first, last = 200.0, 5200.0
    sojourns = []
    for _, arrival, _, end in replicate(network, last + 200, ciw.PSNode):
        counted = (first <= arrival) & (arrival < last)
        sojourns.append((end - arrival)[counted].mean())
    expected = oracles.processor_sharing_sojourn(shape * scale, rate, 1.0)
    agrees(sojourns, float(expected))
