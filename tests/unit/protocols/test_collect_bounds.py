"""Collect with a bound: one family of count, bound and stops, and what it contains."""

from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.catalogue.protocols.collect.collect import Collect
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.catalogue.protocols.t_synchronous import TSynchronous
from stalesim.simulator.files.timeline import Jobs, Kind, Outcome, Rows
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import check_conservation, replay_registers

CONTAINS: dict[str, tuple[Any, Any]] = {
    "ASGD": (Collect(count=1, staleness_bound="none"), Asynchronous()),
    "Ringmaster, Algorithm 4": (
        Collect(count=1, staleness_bound=3),
        Asynchronous(staleness_bound=3),
    ),
    "Ringmaster, Algorithm 5": (
        Collect(count=1, staleness_bound=3, late="stop"),
        Asynchronous(staleness_bound=3, beyond="stop"),
    ),
    "Ringmaster, Algorithm 5, R = 1": (
        Collect(count=1, late="stop"),
        Asynchronous(staleness_bound=0, beyond="stop"),
    ),
    "FedBuff": (Collect(count=3, staleness_bound="none"), Buffered(size=3)),
    "t-synchronous": (
        Collect(count=3, staleness_bound="none", repeats=False),
        TSynchronous(t=3),
    ),
    "m-synchronous": (
        Collect(count=3, repeats=False, late="stop"),
        Synchronous(wait_for=3, late="stop"),
    ),
    "synchronous": (Collect(count=6, repeats=False), Synchronous()),
}
"""Settings of the family, and protocols that are the same. Rennala and rounds without
stops are `collect` with bound 0, of which test_collect.py has what they do."""


def contributions(rows: Rows) -> np.ndarray:
    """Returns when each contribution is applied, its version, client, job and read.

    A protocol may gather a commit's contributions in one row or in several.
    """
    ends = np.repeat(np.flatnonzero(rows.kind == Kind.COMMIT), rows.worker.shape[1])
    there = rows.worker >= 0
    there &= rows.worker < 2**31 - 1
    row = np.broadcast_to(np.arange(rows.time.size)[:, None], there.shape)[there]
    end = np.unique(ends)[np.searchsorted(np.unique(ends), row)]
    columns = (rows.worker, rows.job, rows.read_version)
    found = np.stack([rows.time[end], rows.version[end], *(c[there] for c in columns)])
    return found[:, np.lexsort((found[2], found[1]))]


def ended(jobs: Jobs) -> np.ndarray:
    """Returns every job that has ended: client, job, read, times and outcome."""
    kept = ~np.isin(jobs.outcome, (Outcome.IN_FLIGHT, Outcome.BUFFERED))
    columns = (jobs.client, jobs.job, jobs.read_version, jobs.read_time, jobs.commit)
    found = np.stack([*columns, jobs.outcome])[:, kept]
    return found[:, np.lexsort((found[1], found[0]))]


@pytest.mark.parametrize("name", CONTAINS)
def test_the_family_contains(name: str) -> None:
    family, protocol = CONTAINS[name]
    stops = family.stops_jobs
    for seed in range(3):
        law = Scipy(law="lomax", c=1.5, scale=(1, 1, 2, 2, 4, 8))
        restart = Constant(value=0.3) if stops and seed else None
        clients = Clients(compute=law, restart=restart)
        mine, my_jobs, _ = everything(played(family, clients, 6, seed, commits=120))
        other, jobs, _ = everything(played(protocol, clients, 6, seed, commits=120))
        np.testing.assert_array_equal(contributions(mine), contributions(other))
        np.testing.assert_array_equal(ended(my_jobs), ended(jobs))
        check_conservation(mine, my_jobs, 6)


def test_a_bound_and_a_count_at_once() -> None:
    clients = Clients(compute=Constant(value=(1, 3.5, 9)))
    protocol = Collect(count=2, staleness_bound=1, late="stop")
    rows, jobs, _ = everything(played(protocol, clients, 3, time=8.0))
    # The second commit makes client 2, which has read version 0, 2 stale; it begins
    # again at version 2, and the fourth commit stops it.
    ends = rows.time[rows.kind == Kind.COMMIT]
    assert ends.tolist() == [2, 3.5, 5, 7, 8]
    stopped = jobs.outcome == Outcome.STOPPED
    assert jobs.client[stopped].tolist() == [2, 2]
    assert jobs.read_time[stopped].tolist() == [0, 3.5]
    replay_registers(rows)
