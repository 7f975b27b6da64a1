"""Buffered: what is in the buffer when, and how stale it is."""

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.files.timeline import NO_COMMIT, Outcome, StopReason
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    kinds,
    replay_registers,
    stale,
    staleness,
    workers,
)

LAWS = (Constant(value=1), Constant(value="m"), Scipy(law="expon"))


def test_the_arrival_that_fills_the_buffer_commits_and_reads_the_new_version() -> None:
    clients = Clients(compute=Constant(value=(1, 2, 3.5)))
    rows, jobs, _ = everything(played(Buffered(size=2), clients, 3, time=4.0))
    con, com = "CONTRIBUTE", "COMMIT"
    assert kinds(rows) == [con, com, con, com, con, com, con]
    assert rows.time.tolist() == [1, 2, 2, 3, 3.5, 4, 4]
    assert workers(rows) == [(0,), (1,), (0,), (0,), (2,), (1,), (0,)]
    assert rows.version.tolist() == [0, 0, 1, 1, 2, 2, 3]
    # At 2 s client 1 fills the buffer; client 0's job has been under way since 1 s.
    assert staleness(rows) == [0, 0, 1, 0, 2, 1, 1]
    replay_registers(rows)
    buffered = jobs.outcome == Outcome.BUFFERED
    assert jobs.client[buffered].tolist() == [0]
    assert jobs.commit[buffered].tolist() == [NO_COMMIT]
    applied = jobs.outcome == Outcome.APPLIED
    assert jobs.commit[applied].tolist() == [1, 1, 2, 2, 3, 3]
    assert jobs.arrived_time[applied].tolist() == [2, 1, 3, 2, 4, 3.5]
    assert jobs.applied_time[applied].tolist() == [2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize("most", [1, 6, 7])
def test_a_run_ends_with_the_contribution_that_is_told(most: int) -> None:
    clients = Clients(compute=Constant(value=(1, 2, 3.5)))
    plan = played(Buffered(size=3), clients, 3, contributions=most)
    rows, _, stop = everything(plan)
    assert stop is StopReason.CONTRIBUTIONS
    con, com = "CONTRIBUTE", "COMMIT"
    assert kinds(rows) == [con, con, com, con, con, com, con][:most]


def test_a_window_ends_with_a_commit_of_what_came_until_then() -> None:
    clients = Clients(compute=Constant(value=(1, 2)))
    rows, jobs, _ = everything(played(Buffered(window=1.5), clients, 2, time=4.5))
    # At 3 s client 0 arrives at the very end of the second window: it is still in it.
    assert rows.time.tolist() == [1, 1.5, 2, 2, 3, 3, 4, 4, 4.5]
    assert workers(rows) == [(0,), (), (1,), (0,), (0,), (), (1,), (0,), ()]
    assert rows.version.tolist() == [0, 0, 1, 1, 1, 1, 2, 2, 2]
    assert rows.read_version[rows.worker[:, 0] == 0, 0].tolist() == [0, 0, 1, 1]
    replay_registers(rows)
    check_conservation(rows, jobs, 2)


def test_an_empty_window_makes_no_version() -> None:
    clients = Clients(compute=Constant(value=4))
    rows, _, _ = everything(played(Buffered(window=1.5), clients, 1, commits=2))
    assert rows.time.tolist() == [4, 4.5, 8, 9]


def test_a_window_does_not_keep_a_dead_world_alive() -> None:
    clients = Clients(compute=Constant(value=2), leave=5)
    rows, _, stop = everything(played(Buffered(window=1.5), clients, 2, commits=99))
    assert stop is StopReason.STALLED
    assert rows.time[-1] == 4.5


def test_a_buffer_of_one_is_asynchronous() -> None:
    clients = Clients(compute=Scipy(law="expon"))
    one, *_ = everything(played(Buffered(size=1), clients, 5, commits=200))
    other, *_ = everything(played(Asynchronous(), clients, 5, commits=200))
    for column, wanted in zip(one, other, strict=True):
        np.testing.assert_array_equal(column, wanted)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.law)
@pytest.mark.parametrize("size", [1, 3, 10, 25])
def test_the_mean_staleness_is_the_number_of_others_over_the_size(law, size) -> None:
    """Every commit makes each of the other C - 1 jobs under way one version staler."""
    C, commits = 8, 400
    plan = played(Buffered(size=size), Clients(compute=law), C, commits=commits)
    rows, jobs, _ = everything(plan)
    replay_registers(rows)
    check_conservation(rows, jobs, C)
    applied = jobs.outcome == Outcome.APPLIED
    under_way = commits - jobs.read_version[~applied]
    ages = stale(jobs)
    assert ages.sum() + under_way.sum() == (C - 1) * commits
    assert ages.size == size * commits
    assert ages.mean() == pytest.approx((C - 1) / size, rel=0.05)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.law)
def test_a_window_makes_every_job_under_way_staler(law) -> None:
    C = 8
    plan = played(Buffered(window=0.7), Clients(compute=law), C, commits=300)
    rows, jobs, _ = everything(plan)
    check_conservation(rows, jobs, C)
    applied = jobs.outcome == Outcome.APPLIED
    assert stale(jobs).sum() + (300 - jobs.read_version[~applied]).sum() == C * 300
