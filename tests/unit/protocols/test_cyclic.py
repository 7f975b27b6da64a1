"""Cyclic: whose turn it is, and how stale it is."""

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.turns import Cyclic
from stalesim.simulator.files.timeline import Outcome
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    replay_registers,
    staleness,
    workers,
)


def test_turns_of_one_second() -> None:
    rows, jobs, _ = everything(played(Cyclic(), None, 3, commits=7))
    assert rows.time.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert workers(rows) == [(0,), (1,), (2,), (0,), (1,), (2,), (0,)]
    assert rows.read_version[:, 0].tolist() == [0, 0, 0, 1, 2, 3, 4]
    assert rows.round.tolist() == [0, 0, 0, 1, 1, 1, 2]
    flying = jobs.outcome == Outcome.IN_FLIGHT
    assert jobs.read_version[flying].tolist() == [7, 5, 6]


@pytest.mark.parametrize("num_clients", [1, 2, 5, 100])
@pytest.mark.parametrize("lag", ["K-1", "K"])
@pytest.mark.parametrize("chunk", [7, 4096])
def test_staleness_is_as_specified(num_clients: int, lag, chunk: int) -> None:
    K = num_clients
    plan = played(Cyclic(lag=lag), None, K, commits=5 * K)
    rows, jobs, _ = everything(plan, chunk)
    later = K if lag == "K" else K - 1
    assert staleness(rows) == [*range(K), *[later] * (4 * K)]
    replay_registers(rows)
    check_conservation(rows, jobs, K)


def test_steps_have_a_law() -> None:
    protocol = Cyclic(step=Constant(value=(0.5, 2)))
    rows, *_ = everything(played(protocol, None, 2, commits=4))
    assert rows.time.tolist() == [0.5, 2.5, 3, 5]
    protocol = Cyclic(step=Scipy(law="expon"))
    rows, *_ = everything(played(protocol, None, 4, commits=100))
    assert (np.diff(rows.time) > 0).all()
    assert staleness(rows)[4:] == [3] * 96


def test_the_scenario_says_how_many_clients_there_are() -> None:
    world = {"name": "turns", "protocol": {"kind": "cyclic"}, "stop": {"commits": 5}}
    clients = {"number": 3, "compute": {"law": "expon"}}
    assert WorldScenario.model_validate({**world, "clients": clients}).num_clients == 3
