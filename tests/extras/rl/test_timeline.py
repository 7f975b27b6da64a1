"""Timelines of samples: rows are the trainer's steps, jobs are all samples."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.extras.rl import world as rollouts
from stalesim.simulator.extras.rl.scenario import GenerateAndTrain
from stalesim.simulator.extras.rl.timeline import RolloutTimeline
from stalesim.simulator.extras.rl.world import SampleOutcome
from stalesim.simulator.extras.rl.world.options import RolloutStop
from stalesim.simulator.files.timeline import NO_COMMIT, Outcome, StopReason
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run, merge
from stalesim.simulator.studies.planning import plan
from stalesim.simulator.world.workload import Workload
from tests.support import SGD, everything
from tests.unit.protocols.replay import replay_registers

SEED, GROUP = 4, 2
ABORTING: dict[str, Any] = {"mode": "abort", "seconds": {"law": "constant", "value": 1}}


def timeline(weights: dict[str, Any] | None = None, **stop: Any) -> RolloutTimeline:
    """Returns the timeline of a world whose queue drops groups."""
    tree = {
        "generation": {
            "slots": 10,
            "tokens": {"law": "expon", "scale": 50},
            "seconds_per_token": 0.1,
            "group": GROUP,
        },
        "queue": {"capacity": 1},
        "trainer": {"samples": 4, "step": {"law": "expon", "scale": 2}},
        "weights": weights or {},
    }
    protocol = GenerateAndTrain.model_validate(tree)
    limits = Stop(**(stop or {"commits": 30}))
    return RolloutTimeline(None, protocol, 10, SEED, limits, Workload(0, 0, 10))


@pytest.mark.parametrize("weights", [{}, ABORTING])
def test_rows_and_jobs_are_those_of_the_world(weights: dict[str, Any]) -> None:
    """Steps, versions and fates of the record, whatever the chunks; nothing is lost."""
    plan = timeline(weights)
    rows, jobs, stop = everything(plan, 7)
    assert isinstance(plan.protocol, GenerateAndTrain)
    world = plan.protocol.world(RolloutStop(steps=30))
    record = rollouts.play(world, SEED)
    samples = record.samples
    assert stop is StopReason.COMMITS
    np.testing.assert_array_equal(rows.time, record.steps["end_time"][:30])
    replay_registers(rows)
    largest = int((rows.version[:, None] - rows.read_version).max())
    assert plan.num_registers / 2 < largest + 1 <= plan.num_registers
    for step in (1, 17, 30):
        here = (samples["step"] == step) & (samples["outcome"] == SampleOutcome.TRAINED)
        number = samples["prompt"] * GROUP + samples["member"]
        columns = (number, samples["slot"], samples["start_version"])
        wanted = np.stack([column[here] for column in columns])
        columns = (rows.job, rows.worker, rows.read_version)
        found = np.stack([column[step - 1] for column in columns])
        order = np.argsort(found[0]), np.argsort(wanted[0])
        np.testing.assert_array_equal(found[:, order[0]], wanted[:, order[1]])
        groups = rows.job[step - 1].reshape(-1, GROUP) // GROUP
        assert (groups[:, :1] == groups).all()
    assert jobs.job.size == samples["group"].size
    for fate, outcomes in {
        SampleOutcome.TRAINED: (Outcome.APPLIED,),
        SampleOutcome.DROPPED: (Outcome.REJECTED,),
        SampleOutcome.ABORTED: (Outcome.STOPPED,),
        SampleOutcome.UNDER_WAY: (Outcome.IN_FLIGHT, Outcome.BUFFERED),
    }.items():
        count = (samples["outcome"] == fate).sum()
        assert np.isin(jobs.outcome, outcomes).sum() == count
        assert count or fate is SampleOutcome.ABORTED
    applied = jobs.commit != NO_COMMIT
    assert applied.sum() == 120
    times = (jobs.read_time, jobs.computed_time, jobs.arrived_time, jobs.applied_time)
    assert (np.diff([column[applied] for column in times], axis=0) >= 0).all()


def test_a_run_that_ends_earlier_is_its_beginning() -> None:
    """Jobs that were written before come first when the world is played once more."""
    whole, _, _ = everything(timeline())
    rows, jobs, _ = everything(replace(timeline(), stop=Stop(commits=12)), 5)
    for name in ("time", "worker", "job", "read_version"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(whole, name)[:12])
    _, longer, _ = everything(timeline())
    np.testing.assert_array_equal(jobs.job[:48], longer.job[:48])
    assert (jobs.outcome[:48] == Outcome.APPLIED).all()


def test_ends_by_time_and_by_contributions() -> None:
    full, _, _ = everything(timeline())
    end = float(full.time[11])
    rows, _, stop = everything(timeline(time=end))
    assert (rows.time.size, stop) == (12, StopReason.TIME)
    rows, _, stop = everything(timeline(contributions=46))
    assert (rows.time.size, stop) == (12, StopReason.CONTRIBUTIONS)
    rows, jobs, stop = everything(timeline(time=1e-6))
    assert (rows.time.size, stop) == (0, StopReason.TIME)
    assert (jobs.outcome == Outcome.IN_FLIGHT).all()
    endless: tuple[Any, ...] = ({"bytes": 5}, {"commits": 10**9})
    for limits in endless:
        with pytest.raises(ScenarioError, match="stop must"):
            everything(timeline(**limits))


TREE = merge(
    SGD,
    {
        "name": "policies",
        "protocol": {"kind": "rollouts"} | timeline().protocol.model_dump(mode="json"),
        "algorithm": {"kind": "policy_gradient", "step_size": 0.1, "batch": 1},
        "stop": {"commits": 3},
        "evaluate": {"every": {"commits": 1}, "metrics": ["expected_reward"]},
    },
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": {"trainer": {"samples": 3}}}, "protocol.trainer.samples must be"),
        (
            {"protocol": {"trainer": {"optimizer_steps": 3}}},
            "optimizer_steps must divide trainer.samples (4), got 3",
        ),
        (
            {
                "protocol": {
                    "trainer": {"optimizer_steps": 2},
                    "queue": {"max_age": 1, "dropped": "withheld"},
                }
            },
            "optimizer_steps must be 1 with queue.dropped: withheld",
        ),
        ({"algorithm": {"correction": "decoupled"}}, "must be importance with one"),
        ({"protocol": {"trainer": {"samples": None, "tokens": 9}}}, "must be set"),
        ({"protocol": {"trainer": {"samples": 10**6}}}, "at most 65,536"),
        ({"protocol": {"generation": {"group": 1}}}, "algorithm.advantage must be"),
        ({"protocol": {"generation": {"complete": False}}}, "algorithm.advantage"),
        ({"algorithm": {"batch": 4}}, "batch must be 1"),
        ({"algorithm": {"cap": 2}}, "cap must be left out"),
        ({"algorithm": {"epsilon": 0.1, "correction": "truncated"}}, "epsilon must"),
        ({"problem": {"loss": "hinge"}}, "problem.loss must be softmax or sigmoid"),
        ({"server": {"upload_bandwidth": 9}}, "server must not be set"),
        (
            {"algorithm": {"kind": "sgd", "step_size": 1, "batch": 4}},
            "protocol.kind must be one of",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Scenario.model_validate(merge(TREE, changes))
    assert message in str(caught.value)


def test_runs_of_different_timelines_are_not_batched() -> None:
    """Their registers differ in number; those of one timeline are."""
    tree = merge(TREE, {"engine": {"mode": "batched"}})
    study = Scenario.model_validate(tree)
    runs = [Run(n, "base", {}, n, n // 2, study) for n in range(4)]
    modes = [(task.mode, len(task.runs)) for task in plan(runs, backend="gpu")]
    assert modes == [("shared", 2), ("shared", 2)]
    apart = plan(runs[::2], backend="gpu")
    assert [task.mode for task in apart] == ["compiled", "compiled"]
