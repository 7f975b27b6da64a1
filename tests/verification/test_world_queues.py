"""Cycles, slowdowns, links and queues of a played world against queueing theory.

Figures of queues are means over independent replications of one long run each, so that
their standard error is their standard deviation over the root of their number. Five of
those bound each difference: Student's t with 19 degrees of freedom exceeds five with
probability 8e-5.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest
import simpy

from stalesim.analysis import theory
from stalesim.analysis.theory import queues
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.files.timeline import Jobs, Outcome
from stalesim.simulator.world.clients import Clients, Group, Link, Server
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.links import Bottleneck
from stalesim.simulator.world.slowdowns import (
    NamedSlowdown,
    RandomSlowdown,
    RegimeSlowdown,
)
from stalesim.simulator.world.workload import Workload
from tests.oracles import queues as oracles
from tests.support import everything, played

REPLICATIONS = 20
PRECISION = 0.15
UP, DOWN = 600, 400
"""Bytes of a message to the server, and to a client."""


def jobs_of(
    clients: Clients,
    number: int,
    server: Server | None = None,
    protocol: Any = None,
    seed: int = 1,
    **stop: Any,
) -> Jobs:
    """Returns the jobs of a timeline whose messages have bytes."""
    work, protocol = Workload(UP, DOWN, number), protocol or Asynchronous()
    return everything(played(protocol, clients, number, seed, work, server, **stop))[1]


def applied_of(jobs: Jobs, client: int | None = None) -> Jobs:
    mine = jobs.outcome == Outcome.APPLIED
    if client is not None:
        mine &= jobs.client == client
    return Jobs(*(column[mine] for column in jobs))


def agrees(estimates: list[float] | np.ndarray, expected: float) -> None:
    """Asserts that five standard errors bound the difference, and are small."""
    bound = 5 * np.std(estimates, ddof=1) / sqrt(len(estimates))
    assert np.mean(estimates) == pytest.approx(expected, abs=bound)
    assert bound < PRECISION * expected


def within(start: np.ndarray, end: np.ndarray, first: float, last: float) -> float:
    """Returns the mean number of intervals that hold a moment of [first, last)."""
    inside = np.minimum(end, last) - np.maximum(start, first)
    return float(np.maximum(inside, 0).sum()) / (last - first)


def test_throughput_and_utilisation_of_clients_who_idle() -> None:
    # Mean and variance of each stage, for four clients.
    compute = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 4.0, 9.0, 16.0])
    idle = np.array([8.0, 4.0, 2.0, 1.0]), np.array([64.0, 16.0, 4.0, 1.0]) / 3
    others = 0.25 + 0.5 + 1.0  # read, download, upload: constants
    gamma = Scipy(law="gamma", scale="8/(3 * 2**(m-1))", parameters={"a": 3})
    clients = Clients(
        idle=gamma,
        read=Constant(value=0.25),
        compute=Scipy(law="expon", scale="m"),
        download=Link(latency=Constant(value=0.5)),
        upload=Link(latency=Constant(value=1)),
    )
    seconds = 40_000.0
    jobs = applied_of(jobs_of(clients, 4, time=seconds))
    mean = compute[0] + idle[0] + others
    variance = compute[1] + idle[1]
    # A renewal count over T has mean T/m + (s^2/m^2 - 1)/2, of which the second term is
    # below one half here, and variance T s^2/m^3 in the long run.
    counts = np.bincount(jobs.client, minlength=4)
    bound = 5 * np.sqrt(seconds * variance / mean**3) + 0.5
    assert (np.abs(counts - seconds / mean) < bound).all()
    whole = theory.asynchronous_throughput(mean)
    total = 5 * sqrt((seconds * variance / mean**3).sum()) + 2
    assert counts.sum() / seconds == pytest.approx(whole, abs=total / seconds)
    for client in range(4):
        mine = applied_of(jobs, client)
        busy = (mine.computed_time - mine.read_time - 0.5).sum() / seconds
        u = theory.compute_utilisation(compute[0][client], mean[client])
        # Renewal reward: variance of X - u (X + I) per cycle, and one job at the end.
        reward = (1 - u) ** 2 * compute[1][client] + u**2 * idle[1][client]
        edge = 10 * compute[0][client] / seconds  # a longer one has chance exp(-10)
        bound = 5 * sqrt(reward / mean[client] / seconds) + edge
        assert busy == pytest.approx(u, abs=bound)


@pytest.mark.parametrize("protocol", [Asynchronous(), Synchronous()])
def test_constant_links(protocol: Any) -> None:
    link = Link(latency=Constant(value=0.5), bandwidth=(100.0, 200.0))
    groups = {
        "both": Group(number=2, upload=link, download=Link(bandwidth="50*m")),
        "none": Group(number=1),
        "slow": Group(number=2, download=Link(latency=Constant(value="m"))),
    }
    clients = Clients(compute=Constant(value=1.5), groups=groups)
    jobs = applied_of(jobs_of(clients, 5, protocol=protocol, commits=400))
    upload = np.array([0.5 + UP / 100, 0.5 + UP / 200, 0, 0, 0])[jobs.client]
    download = np.array([DOWN / 50, DOWN / 100, 0, 1, 2])[jobs.client]
    # To the rounding of sums of doubles below 10^4.
    close = {"rtol": 0, "atol": 1e-10}
    np.testing.assert_allclose(
        jobs.computed_time - jobs.read_time, download + 1.5, **close
    )
    np.testing.assert_allclose(jobs.arrived_time - jobs.sent_time, upload, **close)
    assert (jobs.sent_time == jobs.computed_time).all()
    if isinstance(protocol, Asynchronous):
        np.testing.assert_allclose(jobs.applied_time, jobs.arrived_time, **close)
    else:
        slowest = (upload + download + 1.5).max()
        np.testing.assert_allclose(
            jobs.applied_time, slowest * jobs.commit.astype(float), rtol=1e-12
        )


@pytest.mark.parametrize("way", ["upload", "download"])
def test_a_message_passes_its_own_link_and_the_shared_one(way: str) -> None:
    # A link of one's own of `latency + b / bandwidth` seconds does not become faster
    # because a server's link is shared behind it.
    own = Link(latency=Constant(value=0.5), bandwidth=10.0)
    clients = Clients(compute=Constant(value=1), **{way: own})
    server = Server(**{f"{way}_bandwidth": 1e6})
    jobs = applied_of(jobs_of(clients, 1, server, commits=5))
    size = UP if way == "upload" else DOWN
    took = jobs.applied_time - jobs.read_time
    assert (took >= 1 + 0.5 + size / 10 - 1e-9).all()


def test_equal_messages_share_a_link_in_equal_parts() -> None:
    # Clients compute for 1, 2 and 3 s and send 600 bytes at 200 per second: alone in
    # [1, 2), of two in [2, 3), of three from 3 on. Left at 3: 300, 500, 600. At a third
    # of 200 each, the first ends at 7.5; two go on at 100 each with 200 and 300 left.
    # But the first has read again at 7.5 and sends from 8.5 on, where 100 and 200 are
    # left: at a third of 200 each, the second ends at 10.
    clients = Clients(compute=Constant(value="m"))
    jobs = applied_of(jobs_of(clients, 3, Server(upload_bandwidth=200), commits=2))
    assert jobs.client.tolist() == [0, 1]
    assert jobs.arrived_time == pytest.approx([7.5, 10.0])


def test_repairman_at_the_server() -> None:
    K, away, service = 5, 0.5, 1.5
    clients = Clients(compute=Scipy(law="expon", scale=1 / away))
    server = Server(service=Scipy(law="expon", scale=1 / service))
    # Begins with all computing; forgotten after 25 mean times of that. What arrives in
    # the last 50 s is left out, whose stay may not be over.
    first, last = 50.0, 1050.0
    sojourns, rates, present, found = [], [], [], []
    for seed in range(REPLICATIONS):
        jobs = applied_of(jobs_of(clients, K, server, seed=seed, time=last + 50))
        arrived, served = np.sort(jobs.arrived_time), np.sort(jobs.applied_time)
        # First come, first served.
        assert (np.diff(jobs.arrived_time[np.argsort(jobs.applied_time)]) > 0).all()
        counted = (first <= arrived) & (arrived < last)
        sojourns.append((served - arrived)[counted].mean())
        rates.append(counted.sum() / (last - first))
        present.append(within(arrived, served, first, last))
        others = np.arange(arrived.size) - np.searchsorted(served, arrived)
        found.append((others[counted] == 0).mean())
    expected = queues.repairman(K, away, service)
    agrees(sojourns, expected.mean_sojourn_s)
    agrees(list(np.array(sojourns) - 1 / service), expected.mean_wait_s)
    agrees(rates, expected.throughput)
    agrees(present, expected.mean_num_present)
    # Arrival theorem: an arrival sees the law of the network without itself.
    alone = queues.repairman(K - 1, away, service).num_present_law
    agrees(found, alone[0])


@pytest.mark.parametrize("way", ["upload", "download"])
def test_repairman_at_a_shared_link(way: str) -> None:
    # Processor sharing is insensitive to the law of sizes, so that messages of equal
    # size behave in the mean as those of exponential size, and those as a queue.
    K, away = 5, 0.5
    size = UP if way == "upload" else DOWN
    bandwidth = 1.5 * size
    clients = Clients(compute=Scipy(law="expon", scale=1 / away))
    server = Server(**{f"{way}_bandwidth": bandwidth})
    first, last = 50.0, 1050.0
    rates, present = [], []
    for seed in range(REPLICATIONS):
        jobs = applied_of(jobs_of(clients, K, server, seed=seed, time=last + 50))
        counted = (first <= jobs.applied_time) & (jobs.applied_time < last)
        rates.append(counted.sum() / (last - first))
        if way == "upload":
            sent, arrived = jobs.sent_time, jobs.arrived_time
            present.append(within(sent, arrived, first, last))
            assert (arrived - sent >= size / bandwidth - 1e-9).all()
    expected = queues.repairman(K, away, 1.5)
    agrees(rates, expected.throughput)
    if present:
        agrees(present, expected.mean_num_present)
        sojourns = [p / r for p, r in zip(present, rates, strict=True)]
        agrees(sojourns, expected.mean_sojourn_s)


def share(
    arrivals: np.ndarray, sizes: np.ndarray, bandwidth: float
) -> Callable[[], np.ndarray]:
    """Sends messages over a shared link; returns how long each was under way."""
    env = simpy.Environment()
    link = Bottleneck(env, bandwidth)
    ends = np.full(arrivals.size, np.nan)

    def end(message: int) -> None:
        ends[message] = env.now

    for message, arrival in enumerate(arrivals.tolist()):
        event = simpy.Timeout(env, arrival, message)
        event.callbacks.append(
            lambda event: link.send(event.value, float(sizes[event.value]), end)
        )

    def run() -> np.ndarray:
        env.run()
        return ends - arrivals

    return run


@pytest.mark.parametrize("law", ["two sizes", "pareto"])
def test_open_shared_link(law: str) -> None:
    # M/G/1-PS at 60 % load: a message of x seconds alone takes x / (1 - rho) in the
    # mean, whatever the law of sizes.
    rate, bandwidth = 0.6, 10.0
    sojourns, ratios, short, long = [], [], [], []
    for seed in range(REPLICATIONS):
        rng = np.random.default_rng([2, seed])
        n = 3_000
        arrivals = rng.exponential(1 / rate, n).cumsum()
        if law == "two sizes":
            seconds = rng.choice([0.5, 3.0], n, p=[0.8, 0.2])  # mean 1
        else:
            seconds = (1 + rng.pareto(3.5, n)) * 2.5 / 3.5  # mean 1
        took = share(arrivals, seconds * bandwidth, bandwidth)()
        assert (took >= seconds * (1 - 1e-9)).all()
        # Begins empty; memory of about E[S^2] / (E[S] (1 - rho)^2) < 15 s, so that the
        # first 200 s are forgotten. The end drains after the last arrival: left out.
        kept = (arrivals > 200) & (arrivals < arrivals[-1] - 200)
        sojourns.append(took[kept].mean())
        ratios.append((took / seconds)[kept].mean())
        short.append(took[kept & (seconds == 0.5)].mean() if law != "pareto" else 0)
        long.append(took[kept & (seconds == 3.0)].mean() if law != "pareto" else 0)
    expected = oracles.processor_sharing_sojourn([1.0, 0.5, 3.0], rate, 1.0)
    agrees(sojourns, expected[0])
    agrees(ratios, expected[0])  # slowdown of every size
    if law == "two sizes":
        agrees(short, expected[1])
        agrees(long, expected[2])


def test_named_slowdown() -> None:
    slow = NamedSlowdown(clients=(2, 5), factor=10)
    clients = Clients(compute=Constant(value=0.5), slowdowns=(slow,))
    jobs = jobs_of(clients, 5, commits=1_000)
    applied = jobs.outcome == Outcome.APPLIED
    took = (jobs.computed_time - jobs.read_time)[applied]
    expected = np.where(np.isin(jobs.client[applied], (1, 4)), 5.0, 0.5)
    np.testing.assert_allclose(took, expected, rtol=1e-9)


def test_random_slowdown() -> None:
    K, factor, rounds = 5, 2.0, 4_000
    clients = Clients(
        compute=Constant(value=0.5), slowdowns=(RandomSlowdown(factor=factor),)
    )
    jobs = jobs_of(clients, K, protocol=Synchronous(), rounds=rounds)
    applied = jobs.outcome == Outcome.APPLIED
    took = np.zeros((K, rounds))
    computing = (jobs.computed_time - jobs.read_time)[applied]
    took[jobs.client[applied], jobs.job[applied]] = computing
    np.testing.assert_allclose(took[took < 0.75], 0.5, rtol=1e-9)
    np.testing.assert_allclose(took[took > 0.75], 0.5 * factor, rtol=1e-9)
    # One of all jobs of a number, each client as often.
    assert ((took > 0.75).sum(axis=0) == 1).all()
    bound = 5 * sqrt((1 / K) * (1 - 1 / K) / rounds)
    np.testing.assert_allclose((took > 0.75).mean(axis=1), 1 / K, atol=bound)
    assert took.mean() == pytest.approx(0.5 * (1 + (factor - 1) / K))
    ends = np.unique(jobs.applied_time[applied])  # a round has one slow job
    np.testing.assert_allclose(np.diff(ends, prepend=0), 0.5 * factor, rtol=1e-9)


def test_regimes() -> None:
    # By exponential turns, the regime at a job's start depends on that at the start of
    # the one before, by way of its duration: a chain of two states.
    K, normal, slow, job, factor = 40, 3.0, 2.0, 0.5, 4.0
    regime = RegimeSlowdown(
        factor=factor,
        normal=Scipy(law="expon", scale=normal),
        slow=Scipy(law="expon", scale=slow),
    )
    clients = Clients(compute=Constant(value=job), slowdowns=(regime,))
    jobs = jobs_of(clients, K, time=1_000.0)
    share, rate = theory.availability(normal, slow), 1 / normal + 1 / slow
    to_slow = (1 - share) * (1 - np.exp(-rate * job))
    to_normal = share * (1 - np.exp(-rate * job * factor))
    took = jobs.computed_time - jobs.read_time
    found = np.zeros(K)
    for client in range(K):
        mine = took[(jobs.client == client) & (jobs.outcome == Outcome.APPLIED)]
        is_slow = mine > 2 * job
        np.testing.assert_allclose(mine[is_slow], factor * job, rtol=1e-9)
        np.testing.assert_allclose(mine[~is_slow], job, rtol=1e-9)
        found[client] = is_slow.mean()
    # The first job is normal: one of about 900, which is 0.1 % of the mean.
    bound = 5 * found.std(ddof=1) / sqrt(K) + 1e-3
    expected = to_slow / (to_slow + to_normal)
    assert found.mean() == pytest.approx(expected, abs=bound)
