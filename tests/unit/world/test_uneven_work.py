"""Jobs of clients that have more samples take longer, if the world says so."""

from dataclasses import replace

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.engine.of_run import set_up
from stalesim.simulator.scenario.study import Run
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.base import Draws, Population
from stalesim.simulator.world.laws.distributions import Scipy
from stalesim.simulator.world.laws.scaled import SummedSampler
from stalesim.simulator.world.streams import Purpose, Streams
from stalesim.simulator.world.workload import Workload
from tests.support import everything, played, scenario

COMPUTE = {"law": "constant", "value": 2.0}


def clients(per: str) -> Clients:
    return Clients.model_validate({"compute": COMPUTE, "compute_per": per})


@pytest.mark.parametrize("player", ["fastest", "simpy"])
@pytest.mark.parametrize(
    ("per", "seconds"),
    [("job", [2, 2, 2]), ("step", [10, 2, 4]), ("sample", [100, 6, 40])],
)
def test_a_job_takes_as_long_as_its_own_work(player, per, seconds) -> None:
    work = Workload(4, 4, 3, own_steps=(5, 1, 2), own_samples=(50, 3, 20))
    plan = played(Synchronous(), clients(per), 3, 1, work, commits=2)
    _, jobs, _ = everything(replace(plan, player=player))
    taken = (jobs.computed_time - jobs.begun_time)[:6].reshape(2, 3)
    np.testing.assert_allclose(taken, [seconds] * 2)


ALTERNATING = {
    "law": "markov",
    "of": [{"law": "constant", "value": 1}, {"law": "constant", "value": 10}],
    "transition": [[0, 1], [1, 0]],
}


@pytest.mark.parametrize("player", ["fastest", "simpy"])
@pytest.mark.parametrize(
    ("compute", "per", "draws", "seconds"),
    [
        (ALTERNATING, "step", None, {11}),  # a fast and a slow step in each job
        (ALTERNATING, "step", "one", {2, 20}),
        (ALTERNATING, "sample", None, {4, 40}),
        (ALTERNATING, "sample", "each", {22}),
        (COMPUTE, "step", None, {4}),
        (COMPUTE, "sample", "each", {8}),
    ],
)
def test_each_step_has_a_draw_of_its_own(compute, per, draws, seconds, player) -> None:
    world = {"compute": compute, "compute_per": per, "compute_draws": draws}
    work = Workload(4, 4, 3, steps=2, samples=4)
    plan = played(Synchronous(), world, 3, 1, work, commits=6)
    _, jobs, _ = everything(replace(plan, player=player))
    taken = (jobs.computed_time - jobs.begun_time)[:18]
    assert set(np.round(taken, 9).tolist()) == seconds


def test_steps_are_drawn_as_they_come_whatever_is_drawn_together() -> None:
    population = Population(3, Streams(7))
    law = Scipy(law="lognorm", parameters={"s": 1.0}).make(population)
    number = np.array([3, 100, 3])
    summed = SummedSampler(law, number, Purpose.COMPUTE, population)
    who, at = np.array([0, 0, 1, 2, 1]), np.array([0, 1, 5, 2, 6])
    together = summed.draw(Draws(np.zeros(5), who, at), None)
    for client, position, found in zip(who, at, together, strict=True):
        n = number[client]
        each = np.arange(position * n, position * n + n)
        uniform = population.streams.scattered(Purpose.COMPUTE, client, each)
        expected = law.draw(Draws(uniform, int(client), int(each[0])), None).sum()
        alone = summed.draw(Draws(np.zeros(1), int(client), int(position)), None)
        assert expected == alone[0] == found


def test_an_algorithm_says_what_its_clients_have_to_do() -> None:
    partition = {"kind": "dirichlet", "clients": 4, "alpha": 0.2}
    options = {"kind": "fed_avg", "local_epochs": 3, "step_size": 0.1, "batch": 20}
    run = scenario(
        {
            "problem": {"data": {"kind": "digits"}, "partition": partition},
            "clients": {"compute": COMPUTE, "compute_per": "sample"},
            "protocol": {"kind": "synchronous"},
            "algorithm": options,
            "evaluate": {"every": {"commits": 50}},
        }
    )
    setup = set_up(Run(0, "base", {}, 0, 1, run))
    n, workload = setup.shares.num_samples, setup.timeline.workload
    assert workload.own_samples == tuple(3 * size for size in n)
    assert workload.own_steps == tuple(3 * -(-size // 20) for size in n)
    # A round of all clients goes three times through all samples.
    assert workload.contributions_per_epoch == pytest.approx(4 / 3)
    assert isinstance(setup.timeline, SimulatedTimeline)
    _, jobs, _ = everything(setup.timeline)
    first = jobs.computed_time[:4] - jobs.begun_time[:4]
    np.testing.assert_allclose(first, [2.0 * 3 * size for size in n])
