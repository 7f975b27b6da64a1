"""Asynchronous with jobs that are stopped, and with a warm-up."""

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.files.timeline import Kind, Outcome
from stalesim.simulator.world.clients import Clients, Link, Server
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    kinds,
    replay_registers,
    stale,
    staleness,
)

SOON = Scipy(law="expon")


def test_a_job_is_stopped_by_the_commit_that_makes_it_too_stale() -> None:
    clients = Clients(compute=Constant(value=(1, 2.5)))
    protocol = Asynchronous(staleness_bound=1, beyond="stop")
    rows, jobs, _ = everything(played(protocol, clients, 2, time=5.0))
    # Client 1 reads version 0 at 0 s; the second commit, at 2 s, makes it 2 stale.
    stopped = jobs.outcome == Outcome.STOPPED
    assert jobs.client[stopped].tolist() == [1, 1]
    assert jobs.read_time[stopped].tolist() == [0, 2]
    assert rows.time.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("beyond", ["stop", "reject"])
@pytest.mark.parametrize("seed", range(10))
def test_consecutive_commits_are_as_fast_as_proved(seed: int, beyond) -> None:
    """R consecutive commits take at most 2 min_m A_m (1 + R / m) seconds.

    And what is applied is at most R - 1 commits old; with stops nothing is rejected.

    Source: Maranjyan, Tyurin and Richtarik, Ringmaster ASGD (2025), Lemma 4.1, as
    methods.md has it (section 4).
    """
    r = np.random.default_rng(seed)
    n, R = int(r.integers(2, 30)), int(r.integers(1, 40))
    tau = np.sort(r.uniform(0.1, 10, n))
    clients = Clients(compute=Constant(value=tuple(tau.tolist())))
    protocol = Asynchronous(staleness_bound=R - 1, beyond=beyond)
    rows, jobs, _ = everything(played(protocol, clients, n, commits=20 * R + 50))
    m = np.arange(1, n + 1)
    longest = (2 * (1 + R / m) * m / np.cumsum(1 / tau)).min()
    times = np.r_[0, rows.time]
    assert (times[R:] - times[:-R]).max() <= longest * (1 + 1e-12)
    assert stale(jobs).max() <= R - 1
    if beyond == "stop":
        assert not (jobs.outcome == Outcome.REJECTED).any()
    replay_registers(rows)
    check_conservation(rows, jobs, n)


def test_a_bound_that_nothing_reaches_changes_nothing() -> None:
    clients = Clients(compute=SOON)
    bounded = Asynchronous(staleness_bound=10**6, beyond="stop")
    rows, *_ = everything(played(bounded, clients, 5, commits=300))
    wanted, *_ = everything(played(Asynchronous(), clients, 5, commits=300))
    for name in ("time", "kind", "worker", "job", "version", "read_version"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(wanted, name))


def test_a_warm_up_waits_for_everyone_once() -> None:
    clients = Clients(compute=Constant(value=(1, 2, 3.5)))
    rows, jobs, _ = everything(played(Asynchronous(warm_up=True), clients, 3, time=5.0))
    con, com = "CONTRIBUTE", "COMMIT"
    assert kinds(rows) == [con, con, con, con, com, com, com, com]
    assert rows.time.tolist() == [1, 2, 2, 3, 3.5, 4, 4, 5]
    first = rows.kind == Kind.CONTRIBUTE
    assert (rows.version[first] == 0).all()
    replay_registers(rows)
    check_conservation(rows, jobs, 3)


def test_everyone_begins_anew_when_each_client_has_contributed() -> None:
    clients = Clients(compute=Constant(value=(1, 2.5)))
    protocol = Asynchronous(restarts=True)
    rows, jobs, _ = everything(played(protocol, clients, 2, time=5.0))
    # At 2.5 and at 5 s client 1 ends a round; client 0 stops what it began at 2, 4.5 s.
    assert rows.time.tolist() == [1, 2, 2.5, 3.5, 4.5, 5]
    assert rows.worker[:, 0].tolist() == [0, 0, 1, 0, 0, 1]
    assert staleness(rows) == [0, 0, 2, 0, 0, 2]
    stopped = jobs.outcome == Outcome.STOPPED
    assert jobs.read_time[stopped].tolist() == [2, 4.5]
    replay_registers(rows)
    check_conservation(rows, jobs, 2)


@pytest.mark.parametrize("server", [Server(), Server(service=Constant(value=0.3))])
def test_nothing_from_before_a_restart_is_applied(server) -> None:
    clients = Clients(compute=SOON, upload=Link(latency=SOON), restart=SOON)
    plan = played(Asynchronous(restarts=True), clients, 5, server=server, commits=400)
    rows, jobs, _ = everything(plan)
    missing, since = set(range(5)), 0
    for place, client in enumerate(rows.worker[:, 0].tolist()):
        assert rows.read_version[place, 0] >= since
        missing.discard(client)
        if not missing:
            missing, since = set(range(5)), int(rows.version[place]) + 1
    queued = (jobs.outcome == Outcome.REJECTED).any()
    assert queued == (server.service is not None)
    replay_registers(rows)
    check_conservation(rows, jobs, 5)
