"""Seconds that a job takes on top of its client's laws."""

from dataclasses import replace

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.gossip.gossip import Gossip
from stalesim.simulator.catalogue.protocols.rounds import Rounds
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Link
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.slowdowns import NamedSlowdown
from stalesim.simulator.world.workload import Workload
from stalesim.simulator.world.world import World
from tests.support import everything, played


@pytest.mark.parametrize("compute_per", ["job", "step", "sample"])
def test_the_overhead_comes_once_a_job(compute_per) -> None:
    clients = Clients(
        compute=Constant(value=(1, 2)),
        compute_per=compute_per,
        slowdowns=(NamedSlowdown(clients=(2,), factor=3.0),),
        upload=Link(latency=Constant(value=0.5)),
    )
    traffic = Workload(4, 4, 2, steps=5, samples=10, overhead_s=0.25)
    plan = SimulatedTimeline(clients, Rounds(), 2, 1, Stop(rounds=2), traffic)
    rows, jobs, _ = everything(plan)
    times = {"job": 1, "step": 5, "sample": 10}[compute_per]
    computing = np.array([times, 6 * times]) + 0.25
    assert rows.time.tolist() == [computing[1] + 0.5, 2 * (computing[1] + 0.5)]
    taken = jobs.computed_time[:2] - jobs.read_time[:2]
    assert taken.tolist() == computing.tolist()


@pytest.mark.parametrize("protocol", [Rounds(), Asynchronous(), Gossip()])
def test_no_job_escapes_the_overhead(protocol) -> None:
    clients = Clients(compute=Constant(value=1))
    stop = Stop(commits=2)
    plain = SimulatedTimeline(clients, protocol, 2, 1, stop, Workload(4, 4, 2))
    heavy = replace(plain, workload=Workload(4, 4, 2, overhead_s=0.3))
    times = [everything(plan)[0].time for plan in (plain, heavy)]
    np.testing.assert_allclose(times[1], 1.3 * times[0])


def test_a_clock_with_an_overhead_does_not_tick() -> None:
    law = Scipy.model_validate({"law": "poisson", "mu": 2, "scale": 0.5, "shift": 1e-6})
    for overhead_s, ticks in ((0, True), (0.3, False)):
        world = World(
            Clients(compute=law), 2, 1, workload=Workload(overhead_s=overhead_s)
        )
        assert (world.tick is not None) == ticks
        assert world.is_plain == ticks


def test_the_overhead_is_part_of_the_hash() -> None:
    plan = played(Rounds(), Clients(compute=Constant(value=1)), 2, rounds=1)
    other = replace(plan, workload=replace(plan.workload, overhead_s=1e-9))
    assert other.digest != plan.digest
