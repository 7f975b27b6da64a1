"""Collect with jobs that are allotted by their times, or that count by their start."""

from itertools import product

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.collect.collect import Allotment, Collect
from stalesim.simulator.catalogue.protocols.collect.rules import AllottedJobs
from stalesim.simulator.files.timeline import Kind, Outcome
from stalesim.simulator.world.clients import Clients, Link
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import check_conservation, replay_registers, staleness


def test_jobs_go_where_the_longest_is_least() -> None:
    clients = Clients(compute=Constant(value=(1, 2, 4)))
    protocol = Collect(allotment=Allotment(jobs=4, spread=0))
    rows, jobs, _ = everything(played(protocol, clients, 3, commits=3))
    # Nothing is known in the first round: 2, 1 and 1 jobs; then 3, 1 and none.
    assert rows.time[rows.kind == Kind.COMMIT].tolist() == [4, 7, 10]
    own = [np.bincount(rows.worker[rows.round == k, 0], minlength=3) for k in range(3)]
    assert [each.tolist() for each in own] == [[2, 1, 1], [3, 1, 0], [3, 1, 0]]
    assert (rows.read_version[:, 0] == rows.version).all()
    check_conservation(rows, jobs, 3)


@pytest.mark.parametrize("seed", range(10))
def test_no_other_allotment_is_over_sooner(seed: int) -> None:
    r = np.random.default_rng(seed)
    n, jobs = int(r.integers(1, 5)), int(r.integers(1, 7))
    means = r.uniform(0.1, 3, n)
    rule = AllottedJobs(jobs, 0.0, list(range(n)))
    rule.begin()
    for client, mean in enumerate(means):
        rule.took(client, float(mean))
    found = rule.allotted()
    assert sum(found.values()) == jobs
    every = (a for a in product(range(jobs + 1), repeat=n) if sum(a) == jobs)
    least = min(max(a * means) for a in every)
    assert max(found[c] * means[c] for c in range(n)) == pytest.approx(least)


def test_bounds_are_those_of_the_authors_code_and_let_unknown_clients_try() -> None:
    rule = AllottedJobs(2, 0.05, [0, 1])
    rule.begin()
    assert rule.bound(0) == 0
    for seconds in (3.0, 5.0):
        rule.took(0, seconds)
    part = np.log(2) / 2
    assert rule.bound(0) == pytest.approx(4 - 0.2 * np.e * (np.sqrt(part) + part))
    rule.begin()
    part = np.log(2 * 4) / 2
    assert rule.bound(0) == pytest.approx(4 - 0.2 * np.e * (np.sqrt(part) + part))
    assert rule.allotted() == {0: 0, 1: 2}


def test_wrong_allotments_are_as_rare_as_a_logarithm() -> None:
    """A client has a job too many only while its bound is far below its mean.

    The best allotment is over after T, with at most T / tau_i jobs of client i. Jobs
    always take tau_i here, so no bound is above it, and one job more than those goes
    to i only if (floor(T / tau_i) + 1) times its bound is at most T: if its width, 4 e
    alpha (s + s^2) with s^2 = l / n_i, is at least the gap tau_i - T / (floor(T /
    tau_i) + 1). Each such round adds floor(T / tau_i) + 1 jobs to n_i.
    """
    tau, jobs, spread, rounds = np.array([1.0, 1.5, 2.2, 5.0]), 9, 0.02, 400
    clients = Clients(compute=Constant(value=tuple(tau.tolist())))
    protocol = Collect(allotment=Allotment(jobs=jobs, spread=spread))
    rows, *_ = everything(played(protocol, clients, 4, commits=rounds))
    own = np.array(
        [
            np.bincount(rows.worker[rows.round == k, 0], minlength=4)
            for k in range(rounds)
        ]
    )
    every = (a for a in product(range(jobs + 1), repeat=4) if sum(a) == jobs)
    least = min(max(a * tau) for a in every)
    long = np.diff(rows.time[rows.kind == Kind.COMMIT], prepend=0)
    np.testing.assert_allclose(long, (own * tau).max(axis=1), rtol=1e-9)
    too_many = np.floor(least / tau + 1e-9) + 1
    ratio = (tau - least / too_many) / (4 * np.e * spread)
    s = (np.sqrt(1 + 4 * ratio) - 1) / 2
    most = np.log(2 * rounds**2) / s**2 / too_many + 1
    found = (own >= too_many).sum(axis=0)
    assert (found <= most).all()
    assert found.max() > 1
    assert most.max() < rounds / 10


def test_seconds_are_learned_where_the_clock_ticks() -> None:
    """A world of lattice laws runs on ticks, here of half a second."""
    clients = Clients(compute=Constant(value=(0.5, 1.5)))
    protocol = Collect(allotment=Allotment(jobs=3, spread=0.04))
    rows, *_ = everything(played(protocol, clients, 2, commits=60))
    own = np.bincount(rows.worker[rows.round == 59, 0], minlength=2)
    assert own.tolist() == [3, 0] or own.tolist() == [2, 1]
    assert rows.time[rows.kind == Kind.COMMIT][-1] < 60 * 1.6


def test_a_job_counts_by_its_start_where_models_take_time_to_arrive() -> None:
    clients = Clients(
        compute=Constant(value=(1, 1.6)), download=Link(latency=Constant(value=(2, 0)))
    )
    protocol = Collect(count=1, filter="start")
    rows, jobs, _ = everything(played(protocol, clients, 2, time=6.2))
    # Client 0 reads at 0 and 3 s, starts at 2 and 5 s: after the commits of client 1.
    assert rows.time.tolist() == [1.6, 3, 4.8, 6]
    assert rows.worker[:, 0].tolist() == [1, 0, 1, 0]
    assert staleness(rows) == [0, 1, 0, 1]
    rejected = jobs.outcome == Outcome.REJECTED
    assert jobs.arrived_time[rejected].tolist() == [3.2]
    replay_registers(rows)
    check_conservation(rows, jobs, 2)
    by_read, *_ = everything(played(Collect(count=1), clients, 2, time=6.2))
    assert by_read.worker[:, 0].tolist() == [1, 1, 1]


def test_with_free_links_start_and_read_are_one() -> None:
    clients = Clients(compute=Scipy(law="expon"), idle=Scipy(law="expon"))
    for late in ("reject", "stop"):
        found = [
            everything(
                played(Collect(count=3, late=late, filter=by), clients, 5, rounds=40)
            )
            for by in ("read", "start")
        ]
        for name in ("time", "kind", "worker", "job", "version", "read_version"):
            one, other = (getattr(rows, name) for rows, *_ in found)
            np.testing.assert_array_equal(one, other)
