"""Evaluations that keep the server busy, against what queues of one server say."""

import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.files.timeline import Jobs
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Server
from stalesim.simulator.world.workload import Workload
from tests.support import everything


def jobs_of(
    compute: Any,
    number: int,
    server: Any,
    protocol: Any = None,
    seed: int = 1,
    **stop: Any,
) -> Jobs:
    """Returns the jobs of a timeline that were applied, in order."""
    plan = SimulatedTimeline(
        Clients.model_validate({"compute": compute}),
        protocol or Asynchronous(),
        number,
        seed,
        Stop(**stop),
        Workload(4, 4, number),
        server=Server.model_validate(server),
    )
    jobs = everything(plan)[1]
    kept = np.isfinite(jobs.applied_time)
    order = np.argsort(jobs.applied_time[kept], kind="stable")
    return Jobs(*(column[kept][order] for column in jobs))


def constant(value: float) -> dict[str, Any]:
    return {"law": "constant", "value": value}


@pytest.mark.parametrize("takes", [0.5, 2.0, 5.0])
def test_one_client_waits_for_what_is_longer_than_its_job(takes: float) -> None:
    """Cycles of max(c, E): an evaluation is hidden behind a job that is as long."""
    server = {"evaluation": {"every": 1, "takes": constant(takes)}}
    jobs = jobs_of(constant(2.0), 1, server, commits=40)
    np.testing.assert_allclose(np.diff(jobs.applied_time), max(2.0, takes))
    np.testing.assert_allclose(jobs.arrived_time[1:] - jobs.applied_time[:-1], 2.0)


@pytest.mark.parametrize(("every", "service"), [(1, 0.0), (4, 0.0), (5, 0.3)])
def test_a_busy_server_commits_at_the_rate_of_its_work(
    every: int, service: float
) -> None:
    """N services and an evaluation take N s + E, where clients always wait."""
    server: dict[str, Any] = {"evaluation": {"every": every, "takes": constant(8.0)}}
    if service:
        server["service"] = constant(service)
    jobs = jobs_of(constant(0.01), 50, server, commits=400)
    turns = jobs.applied_time[every - 1 :: every]
    np.testing.assert_allclose(np.diff(turns)[60:], every * service + 8.0)


@pytest.mark.parametrize("every", [1, 3])
def test_an_exponential_job_hides_a_part_of_an_evaluation(every: int) -> None:
    """Of N cycles one is max(C, E), of mean E + exp(-mu E) / mu, the others 1 / mu.

    The mean of n cycles is within five of its standard errors; a cycle's variance is at
    most 1 / mu^2, since that of max(C, E) is at most C's.
    """
    mu, takes, commits = 0.5, 3.0, 6000
    law = {"law": "expon", "scale": 1 / mu}
    server = {"evaluation": {"every": every, "takes": constant(takes)}}
    jobs = jobs_of(law, 1, server, commits=commits)
    cycle = takes + math.exp(-mu * takes) / mu + (every - 1) / mu
    found = jobs.applied_time[-1] / commits
    assert found == pytest.approx(cycle / every, abs=5 / mu / math.sqrt(commits))


def test_rounds_wait_for_evaluations() -> None:
    """The first message of the next round finds the server busy for E - c."""
    server = {"evaluation": {"every": 3, "takes": constant(5.0)}}
    jobs = jobs_of(constant(2.0), 3, server, Synchronous(), commits=20)
    rounds = np.unique(jobs.applied_time)
    np.testing.assert_allclose(np.diff(rounds), 5.0)


def test_none_is_the_world_of_before() -> None:
    law = {"law": "expon", "scale": 1.0}
    never = {"evaluation": {"every": 10**9, "takes": constant(5.0)}}
    ours, other = (jobs_of(law, 4, s, seed=3, commits=200) for s in (never, {}))
    for one, two in zip(ours, other, strict=True):
        np.testing.assert_array_equal(one, two)


def test_worlds_without_a_server_refuse_them() -> None:
    tree = {
        "name": "cyclic",
        "clients": {"number": 4, "compute": constant(1.0)},
        "protocol": {"kind": "cyclic"},
        "server": {"evaluation": {"every": 1, "takes": constant(1.0)}},
        "stop": {"time": 10},
    }
    with pytest.raises(ValidationError, match=r"server.evaluation must be left out"):
        WorldScenario.model_validate(tree)
