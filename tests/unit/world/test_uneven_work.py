"""Jobs of clients that have more samples take longer, if the world says so."""

from dataclasses import replace

import numpy as np
import pytest

from simulator.protocols.synchronous import Synchronous
from simulator.scenario.setting import WorldScenario
from simulator.scenario.study import Run
from simulator.timelines.of_run import set_up, timeline
from simulator.timelines.simulated import SimulatedTimeline
from simulator.world.clients import Clients
from simulator.world.workload import Workload
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
    plan = played(Synchronous(), clients(per), 3, commits=2)
    _, jobs, _ = everything(replace(plan, workload=work, player=player))
    taken = (jobs.computed_time - jobs.begun_time)[:6].reshape(2, 3)
    np.testing.assert_allclose(taken, [seconds] * 2)


WORLD = {
    "name": "world",
    "clients": {
        "number": 2,
        "compute": {"law": "constant", "value": "m/1e6"},
        "compute_per": "flop",
    },
    "protocol": {"kind": "synchronous"},
    "stop": {"commits": 1},
}


def test_a_world_without_a_problem_says_its_operations_itself() -> None:
    job = {"samples": 10, "flops": 2e5}
    found = WorldScenario.model_validate(WORLD | {"job": job})
    plan = timeline(Run(0, "base", {}, 0, 1, found))
    assert isinstance(plan, SimulatedTimeline)
    _, jobs, _ = everything(plan)
    taken = (jobs.computed_time - jobs.begun_time)[:2]
    np.testing.assert_allclose(sorted(taken), [2, 4])
    with pytest.raises(ValueError, match=r"job\.flops must be given"):
        WorldScenario.model_validate(WORLD)


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
