"""Routed: tasks in queues, against the closed forms of a closed network."""

import numpy as np
import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.laws.constant import Constant
from stalesim.simulator.laws.distributions import Scipy
from stalesim.simulator.protocols import Asynchronous, Routed
from stalesim.simulator.timeline import Jobs, Kind, Outcome, Rows, check
from stalesim.simulator.world.clients import (
    Clients,
    Crashes,
    Link,
    Loss,
    Selection,
    Server,
)
from tests.support import everything, played
from tests.unit.protocols.replay import replay_registers, workers

SOON = Scipy(law="expon")


def check_tasks(rows: Rows, jobs: Jobs, tasks: int) -> None:
    """Asserts that no task is lost, and that as many are in flight as there may be."""
    check(rows, tasks + 1)
    assert rows.version.tolist() == list(range(rows.time.size))
    for client in range(jobs.client.max() + 1):
        mine = jobs.job[jobs.client == client]
        assert sorted(mine.tolist()) == list(range(mine.size))
    assert (jobs.outcome == Outcome.IN_FLIGHT).sum() == tasks
    assert (jobs.outcome == Outcome.APPLIED).sum() == rows.time.size
    replay_registers(rows)


def test_tasks_wait_in_order_with_the_model_of_their_routing() -> None:
    clients = Clients(compute=Constant(value=1))
    protocol = Routed(tasks=3, weights=(1, 0))
    rows, jobs, _ = everything(played(protocol, clients, 2, time=5.5))
    assert workers(rows) == [(0,)] * 5
    assert rows.time.tolist() == [1, 2, 3, 4, 5]
    # Three tasks read version 0; each later one reads what the commit before it left.
    assert rows.read_version[:, 0].tolist() == [0, 0, 0, 1, 2]
    check_tasks(rows, jobs, 3)


def test_a_read_at_service_is_fresher() -> None:
    clients = Clients(compute=Constant(value=1))
    protocol = Routed(tasks=3, weights=(1, 0), reads="service")
    rows, _, _ = everything(played(protocol, clients, 2, time=5.5))
    assert rows.read_version[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_back_with_a_task_each_is_asynchronous() -> None:
    clients = Clients(compute=SOON)
    rows, *_ = everything(played(Routed(tasks=5, route="back"), clients, 5, commits=99))
    wanted, *_ = everything(played(Asynchronous(), clients, 5, commits=99))
    for name in ("time", "worker", "job", "version", "read_version"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(wanted, name))


def test_shuffled_tasks_go_to_everyone_in_each_pass() -> None:
    clients = Clients(compute=SOON)
    plan = played(Routed(tasks=4, route="shuffled"), clients, 6, commits=300)
    _, jobs, _ = everything(plan)
    order = np.lexsort((jobs.client, jobs.read_version))
    counts = np.bincount(jobs.client[order], minlength=6)
    assert counts.max() - counts.min() <= 1


def mean_values(rates, shares, tasks: int) -> tuple[float, np.ndarray]:
    """Returns throughput, and mean queue lengths with one task less.

    Source: mean-value analysis of a closed product-form network (Reiser and Lavenberg,
    1980); methods.md, section 9.
    """
    lengths = np.zeros(len(rates))
    through = 0.0
    for k in range(1, tasks + 1):
        before = lengths
        waits = (1 + lengths) / rates
        through = k / (shares @ waits)
        lengths = through * shares * waits
    return float(through), before


@pytest.mark.parametrize(
    ("rates", "weights", "tasks"),
    [
        ((4, 2, 1, 0.5), (0.4, 0.3, 0.2, 0.1), 6),
        ((1, 1, 1), (1, 1, 1), 3),
        ((3, 1, 0.2), (1, 2, 3), 9),
    ],
)
def test_throughput_and_delays_are_those_of_the_network(rates, weights, tasks) -> None:
    """Commits a second and commits between routing and use, within 5 standard errors.

    And sum_i p_i D_i = m - 1, whatever the speeds are.
    """
    n, commits = len(rates), 40_000
    scale = tuple(1 / rate for rate in rates)
    clients = Clients(compute=Scipy(law="expon", scale=scale))
    protocol = Routed(tasks=tasks, weights=weights)
    rows, jobs, _ = everything(played(protocol, clients, n, commits=commits))
    check_tasks(rows, jobs, tasks)
    shares = np.array(weights) / np.sum(weights)
    through, lengths = mean_values(np.array(rates), shares, tasks)
    delay = (rows.version - rows.read_version[:, 0]).astype(float)
    batches = rows.time.reshape(40, -1)[:, -1]
    spans = np.diff(batches, prepend=0)
    rate = commits / 40 / spans
    assert abs(rate.mean() - through) < 5 * rate.std(ddof=1) / 40**0.5
    for client in range(n):
        own = delay[rows.worker[:, 0] == client]
        parts = np.array([part.mean() for part in np.array_split(own, 30)])
        wanted = lengths[client] / shares[client]
        assert abs(parts.mean() - wanted) < 5 * parts.std(ddof=1) / 30**0.5
    waiting = commits - jobs.read_version[jobs.outcome == Outcome.IN_FLIGHT]
    # Each commit makes the m - 1 others one commit older, and the next one is new.
    assert delay.sum() + waiting.sum() == (tasks - 1) * commits


@pytest.mark.parametrize("route", ["random", "shuffled", "back"])
@pytest.mark.parametrize(
    "clients",
    [
        Clients(compute=SOON, upload=Link(latency=SOON), idle=SOON),
        Clients(compute=SOON, loss=Loss(chance=0.4, timeout=1, retries=1)),
        Clients(compute=SOON, crashes=Crashes(after=SOON, down=SOON)),
    ],
)
def test_as_many_tasks_are_in_flight_in_a_rough_world(clients, route) -> None:
    plan = played(Routed(tasks=7, route=route), clients, 4, commits=200)
    rows, jobs, _ = everything(plan)
    assert (rows.kind == Kind.COMMIT).all()
    check_tasks(rows, jobs, 7)


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (Routed(tasks=2, weights=0), "protocol.weights must be >= 0"),
        (Routed(tasks=2, weights="m - 2"), "protocol.weights must be >= 0"),
    ],
)
def test_chances_that_are_none_are_refused(protocol, words) -> None:
    with pytest.raises(ScenarioError, match=words):
        protocol.check_setting(Clients(compute=SOON), Server(), 4)


def test_a_selection_is_refused() -> None:
    clients = Clients(compute=SOON, selection=Selection(in_flight=2))
    with pytest.raises(ScenarioError, match="selection must not be set"):
        Routed(tasks=2).check_setting(clients, Server(), 4)
