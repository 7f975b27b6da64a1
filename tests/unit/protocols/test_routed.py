"""Routed: tasks in queues, against the closed forms of a closed network."""

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.routed import Routed
from stalesim.simulator.files.timeline import Outcome
from stalesim.simulator.world.clients import (
    Clients,
)
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import check_tasks, workers

SOON = Scipy(law="expon")


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
