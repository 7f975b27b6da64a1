"""Computing times by the rows that a job has drawn: a blind twin, and closed forms."""

from typing import Any

import numpy as np
import pytest

from stalesim.simulator.engine.of_run import set_up, timeline
from stalesim.simulator.files.timeline import Jobs
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.study import Run, merge
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.streams import Purpose
from stalesim.simulator.world.world import World
from tests.support import everything, scenario

K, ROWS, BATCH = 40, 25, 3
LENGTH = 2
"""Column of the data."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rows whose third column is a length with a heavy tail."""
    r = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("rows") / "rows.npz"
    x = r.normal(size=(K * ROWS, 4)).astype(np.float32)
    x[:, LENGTH] = np.ceil(5 * r.pareto(2.2, K * ROWS) + 1)
    x[:, 3] = 2.0
    np.savez(path, x=x, y=r.integers(0, 3, K * ROWS))
    return str(path)


def tree(data: str, **changes: Any) -> dict[str, Any]:
    base = {
        "problem": {
            "data": {"kind": "npz", "path": data, "scale": "raw"},
            "partition": {"kind": "iid", "clients": K},
        },
        "clients": {"compute": {"law": "expon", "scale": 0.5}, "compute_by": LENGTH},
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": BATCH},
        "stop": {"time": 200, "commits": None},
        "evaluate": {"every": {"time": 100, "commits": None}},
    }
    return merge(base, changes)


def plan(data: str, seed: int = 3, **changes: Any) -> SimulatedTimeline:
    run = Run(0, "base", {}, 0, seed, scenario(tree(data, **changes)))
    found = timeline(run)
    assert isinstance(found, SimulatedTimeline)
    return found


def jobs_of(found: SimulatedTimeline) -> Jobs:
    _, jobs, _ = everything(found)
    order = np.lexsort((jobs.job, jobs.client))
    return Jobs(*(column[order] for column in jobs))


PROTOCOLS: dict[str, dict[str, Any]] = {
    "asynchronous": {"kind": "asynchronous"},
    "synchronous": {"kind": "synchronous"},
    "buffered": {"kind": "buffered", "size": 3},
    "stopped": {"kind": "collect", "count": 9, "late": "stop"},
    "queued": {"kind": "routed", "tasks": 60},
    "summed": {"kind": "spanning_tree", "graph": {"kind": "ring"}, "count": 9},
    "pairs": {"kind": "gossip", "graph": {"kind": "ring"}, "initiator": "every"},
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_job_takes_its_draw_times_the_mean_of_its_rows(name: str, data: str) -> None:
    """Of every protocol: the n-th draw of a client, and the batch of its job."""
    pairs = {"algorithm": {"kind": "psgd", "step_size": 0.1, "batch": BATCH}}
    more = pairs if name == "pairs" else {}
    run = Run(0, "b", {}, 0, 3, scenario(tree(data, protocol=PROTOCOLS[name], **more)))
    setup = set_up(run)
    found = setup.timeline
    assert isinstance(found, SimulatedTimeline)
    jobs = jobs_of(found)
    length = setup.shares.data.x_train[:, LENGTH].astype(float)
    assert found.clients is not None
    world = World(found.clients, K, 3)
    seen = 0
    for client in range(K):
        mine = np.flatnonzero(jobs.client == client)
        for number in mine[~np.isnan(jobs.begun_time[mine])]:
            drawn = float(world.draw(Purpose.COMPUTE, client))
            if np.isnan(jobs.computed_time[number]):
                continue  # stopped, or under way at the end
            rows = setup.sampler.batch(client, int(jobs.job[number]))
            took = jobs.computed_time[number] - jobs.begun_time[number]
            np.testing.assert_allclose(
                took, drawn * length[rows].mean(), rtol=1e-9, atol=1e-12
            )
            seen += 1
    assert seen > 5 * K


@pytest.mark.parametrize("per", ["job", "sample"])
@pytest.mark.parametrize("name", ["asynchronous", "synchronous", "buffered"])
def test_both_players_make_the_same_tables(name: str, per: str, data: str) -> None:
    changes: dict[str, Any] = {"protocol": PROTOCOLS[name]}
    changes["clients"] = {
        "compute_per": per,
        "slowdowns": [{"kind": "random", "factor": 3}],
        "upload": {"latency": {"law": "expon"}},
    }
    fast = plan(data, **changes)
    slow = plan(data, **changes, timeline={"player": "simpy"})
    assert (fast.made_by, slow.made_by) == ("arrays", "SimPy")
    for ours, theirs in zip(everything(fast)[:2], everything(slow)[:2], strict=True):
        for name in set(ours._fields) - {"read_slot", "write_slot"}:
            mine, other = getattr(ours, name), getattr(theirs, name)
            np.testing.assert_array_equal(mine, other, name)


def test_by_samples_a_job_takes_its_draw_times_the_sum_of_its_rows(data: str) -> None:
    by_sum = jobs_of(plan(data, clients={"compute_per": "sample"}))
    longer = {"compute": {"scale": 0.5 * BATCH}}
    by_mean = jobs_of(plan(data, clients=longer))
    np.testing.assert_allclose(by_sum.arrived_time, by_mean.arrived_time, rtol=1e-12)


def test_timelines_depend_on_the_column_and_the_batches(data: str) -> None:
    found = [
        plan(data),
        plan(data, clients={"compute_by": 3}),
        plan(data, clients={"compute_by": None}),
        plan(data, algorithm={"batch": 4}),
        plan(data, algorithm={"sampling": "shuffled"}),
        plan(data, problem={"partition": {"kind": "contiguous", "clients": K}}),
    ]
    assert len({each.digest for each in found}) == len(found)
    assert plan(data).digest == found[0].digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": {"compute_by": 0}}, "must be a column of numbers > 0"),
        ({"clients": {"compute_by": 9}}, "compute_by must be at most 3"),
        ({"clients": {"compute_by": "size"}}, "compute_by must be a column of"),
        ({"algorithm": {"samples": "common"}}, "must be left out where the clients"),
        ({"protocol": {"kind": "cyclic"}}, "for the steps of this protocol"),
    ],
)
def test_other_columns_are_refused(
    changes: dict[str, Any], message: str, data: str
) -> None:
    with pytest.raises((ScenarioError, ValueError)) as caught:
        plan(data, **changes)
    assert message in str(caught.value)
