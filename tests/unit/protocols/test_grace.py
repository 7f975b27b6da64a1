"""Buffered with a period of grace: who is applied together, and who waits."""

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.files.timeline import Kind
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    kinds,
    replay_registers,
    staleness,
    workers,
)

SOON = Scipy(law="expon")


def test_arrivals_within_the_grace_of_the_first_are_one_version() -> None:
    clients = Clients(compute=Constant(value=(1, 1.25, 3)))
    rows, jobs, _ = everything(played(Buffered(grace=0.5), clients, 3, time=4.6))
    con, com = "CONTRIBUTE", "COMMIT"
    assert kinds(rows) == [con, con, com, con, con, con, com, con, con, com]
    # Client 2 arrives at the very end of the second window: it is still in it.
    assert rows.time.tolist() == [1, 1.25, 1.5, 2.5, 2.75, 3, 3, 4, 4.25, 4.5]
    assert workers(rows)[3:7] == [(0,), (1,), (2,), ()]
    assert staleness(rows)[2:5] == [0, 0, 1]
    # Who has arrived waits for the new version.
    own = jobs.client == 0
    assert jobs.read_time[own].tolist() == [0, 1.5, 3, 4.5]
    replay_registers(rows)
    check_conservation(rows, jobs, 3)


@pytest.mark.parametrize("seconds", [1, 0.3])
def test_equal_clients_without_a_grace_are_synchronous(seconds: float) -> None:
    """Arrivals of one instant are one version, in ticks and in seconds."""
    clients = Clients(compute=Constant(value=seconds))
    rows, *_ = everything(played(Buffered(grace=0), clients, 4, rounds=20))
    wanted, *_ = everything(played(Synchronous(), clients, 4, rounds=20))
    commits = rows.kind == Kind.COMMIT
    np.testing.assert_array_equal(rows.time[commits][:20], wanted.time)
    assert rows.worker[~commits, 0].tolist()[:80] == list(range(4)) * 20
    assert set(staleness(rows)) <= {0}
