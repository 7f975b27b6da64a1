"""Jobs that a world hands out: their ends are those that it is told."""

import numpy as np

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.files.timeline import Incident, Outcome
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.cycle import Cycle, Then, Way
from stalesim.simulator.world.laws.distributions import Constant
from stalesim.simulator.world.planned import HandedOutWay
from stalesim.simulator.world.workload import Workload
from stalesim.simulator.world.world import World


class Elsewhere(World):
    """Jobs take a second, and client 2 loses its second one; laws say 100 s."""

    def __init__(self, played: SimulatedTimeline) -> None:
        super().__init__(played.clients, played.num_clients, played.seed, lattice=False)
        self.given = [0] * played.num_clients

    @property
    def is_plain(self) -> bool:
        return False

    def way(self, cycle: Cycle, *, stops: bool) -> Way:
        return HandedOutWay(cycle, self.give)

    def give(self, client: int, arrived: Then, gone: Then) -> None:
        self.given[client] += 1
        if (client, self.given[client]) == (1, 2):
            self.call(0.5, gone, client)
            self.call(1, arrived, client)  # void: its job has ended
        else:
            self.call(1 + client / 100, arrived, client)


class Timeline(SimulatedTimeline):
    def _new_world(self) -> World:
        return Elsewhere(self)


def test_jobs_that_are_handed_out_end_when_that_is_said() -> None:
    clients = Clients(compute=Constant(value=100))
    plan = Timeline(
        *(clients, Asynchronous(), 2, 1, Stop(commits=6), Workload(4, 4, 2)),
        player="simpy",
    )
    (chunk,) = plan.chunks(100)
    rows, jobs = chunk.rows, chunk.jobs
    assert np.allclose(rows.time, [1, 1.01, 2, 2.52, 3, 3.53])
    assert rows.worker[:, 0].tolist() == [0, 1, 0, 1, 0, 1]
    lost = jobs.outcome == Outcome.CRASHED
    assert (jobs.client[lost].tolist(), jobs.job[lost].tolist()) == ([1], [1])
    crashes = chunk.incidents.incident == Incident.CRASHED
    assert np.allclose(chunk.incidents.time[crashes], [1.51])
