"""Step sizes by epochs: what they are at every commit, and in which runs together."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator import studies
from stalesim.simulator.engine.kernel import on_device
from stalesim.simulator.engine.simulation import prepare
from stalesim.simulator.engine.step_rules import (
    Constants,
    PiecewiseStep,
    Steps,
    WarmupStep,
    resolve,
)
from stalesim.simulator.files.timeline import NO_WORKER, Kind
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import merge
from tests.runs import execute, prepared
from tests.support import VAFL, everything
from tests.unit.test_gossip_runs import BASE, K

CIFAR = PiecewiseStep(values=(0.4, 0.04, 0.004), epochs=(160, 240))
SWB = WarmupStep(first=0.1, value=1, rising=10, factor=math.sqrt(0.5), falling=10)
PER_EPOCH = 50_000 / 256
"""Mini-batches of all workers, of CIFAR-10: 160 epochs are 31,250 of them."""


def steps(rule: Any, per_epoch: float) -> Steps:
    workers, server = resolve(rule, Constants(commits_per_epoch=per_epoch))
    assert isinstance(workers, Steps)
    assert workers is server
    return workers


def test_three_constants_as_on_cifar() -> None:
    found = steps(CIFAR, PER_EPOCH)
    at = {
        0.4: (0, 1, 31_249),
        0.04: (31_250, 31_251, 46_874),
        0.004: (46_875, 46_876, 58_593, 10**9),
    }
    for value, commits in at.items():
        assert {found.at(commit) for commit in commits} == {value}


def test_a_value_begins_with_the_first_commit_of_its_epoch() -> None:
    # Two epochs of 31.25 commits end within the 63rd, which 62 come before.
    found = steps(PiecewiseStep(values=(3, 2, 1), epochs=(2, 2.5)), 31.25)
    assert [found.at(k) for k in (61, 62, 63, 78, 79)] == [3, 3, 2, 2, 1]
    alone = steps(PiecewiseStep(values=(0.7,), epochs=()), 31.25)
    assert [alone.at(k) for k in (0, 10**6)] == [0.7, 0.7]


def test_a_warm_up_as_on_speech() -> None:
    found = steps(SWB, 4.0)
    expected = [0.1 * (epoch + 1) for epoch in range(10)]
    expected += [math.sqrt(0.5) ** (epoch + 1) for epoch in range(10)]
    assert expected[9] == pytest.approx(1)
    for epoch, value in enumerate(expected):
        for commit in (4 * epoch, 4 * epoch + 3):
            assert found.at(commit) == pytest.approx(value, rel=1e-14)
    # Twenty epochs are all that there are; then it stays.
    assert found.at(80) == found.at(10**6) == pytest.approx(1 / 32, rel=1e-14)


def test_without_a_fall_a_warm_up_ends_at_its_value() -> None:
    found = steps(WarmupStep(first=0, value=0.6, rising=4), 1.0)
    values = [found.at(k) for k in range(6)]
    assert values == pytest.approx([0, 0.2, 0.4, 0.6, 0.6, 0.6])


def test_a_warm_up_of_one_epoch_is_refused() -> None:
    with pytest.raises(ValidationError):
        WarmupStep(first=0.1, value=1, rising=1, factor=0.5, falling=1)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize(("rule", "per_epoch"), [(CIFAR, PER_EPOCH), (SWB, 4.0)])
def test_on_device_they_are_the_same(rule: Any, per_epoch: float, double: bool) -> None:
    plain = steps(rule, per_epoch)
    bounds = np.asarray(plain.bounds, int)
    commits = np.unique(np.r_[0, bounds - 1, bounds, bounds + 1, 10**6])
    expected = [plain.at(commit) for commit in commits]
    with jax.enable_x64(double):
        schedule = on_device(plain)
        assert schedule.values.dtype == ("float64" if double else "float32")
        at = jax.jit(lambda schedule, commit: schedule.at(commit))
        one = [at(schedule, jnp.int32(commit)) for commit in commits]
        every = jax.jit(jax.vmap(at, (None, 0)))(schedule, jnp.asarray(commits))
    rtol = 1e-15 if double else 1e-7
    np.testing.assert_allclose(one, expected, rtol)
    np.testing.assert_allclose(every, expected, rtol)


def test_runs_that_differ_in_values_and_epochs_go_together_on_the_device() -> None:
    rules = (
        PiecewiseStep(values=(3, 2, 1), epochs=(1, 2)),
        PiecewiseStep(values=(0.3, 0.2, 0.1), epochs=(2, 3)),
        WarmupStep(first=0.5, value=1, rising=2, factor=0.25, falling=1),
    )
    several = jax.tree.map(
        lambda *leaves: jnp.stack(leaves),
        *(on_device(steps(rule, 2.0)) for rule in rules),
    )
    at = jax.jit(jax.vmap(lambda schedule, k: schedule.at(k), (0, None)))
    found = [at(several, k) for k in range(8)]
    expected = [
        [3, 3, 2, 2, 1, 1, 1, 1],
        [0.3, 0.3, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1],
        [0.5, 0.5, 1, 1, 0.25, 0.25, 0.25, 0.25],
    ]
    np.testing.assert_allclose(np.transpose(found), expected, 1e-7)


def study(*rules: Any, **more: Any) -> Scenario:
    """Returns a study of gossip in which only the step size differs."""
    tree = merge(VAFL, merge(BASE, more))
    return Scenario.model_validate(tree | {"sweep": {"algorithm.step_size": rules}})


def batches(*rules: Any) -> list[tuple[str, list[int]]]:
    """Returns how the runs of some step sizes are executed, and which together."""
    _, tasks = studies.planned(study(*rules))
    return [(task.mode, [run.number for run in task.runs]) for task in tasks]


def piecewise(*values: float, epochs: tuple[float, ...]) -> dict[str, Any]:
    return {"kind": "piecewise", "values": values, "epochs": epochs}


PIECES = [
    piecewise(0.5, 0.2, 0.1, epochs=(1, 3.5)),
    piecewise(0.3, 0.03, 0.3, epochs=(0.5, 2)),
    {"kind": "warmup", "first": 0.2, "value": 0.4, "rising": 2, "falling": 1},
]


def test_runs_share_a_batch_unless_they_have_other_numbers_of_values() -> None:
    two = [piecewise(0.5, 0.1, epochs=(1,)), piecewise(0.4, 0.2, epochs=(2,))]
    found = batches(*PIECES, *two, 0.1, 0.2)
    assert found == [("shared", [0, 1, 2]), ("shared", [3, 4]), ("shared", [5, 6])]


def test_a_runs_steps_are_those_of_its_epochs() -> None:
    scenario = study(*PIECES)
    (task,) = studies.planned(scenario)[1]
    plans = [prepare(run) for run in task.runs]
    memory, _ = execute(plans, task.mode)
    per_epoch = 25  # 200 samples by 8
    expected = [
        [0.5] * 25 + [0.2] * 63 + [0.1] * 32,  # the 88th ends 3.5 epochs, or 87.5
        [0.3] * 13 + [0.03] * 37 + [0.3] * 70,
        [0.2] * per_epoch + [0.4] * 95,
    ]
    losses = []
    for run, values in enumerate(expected):
        found = memory.column("commits", "step_size", run)
        made = ~np.isnan(memory.column("commits", "loss", run))
        np.testing.assert_allclose(found[made], values, 1e-6)
        losses.append(memory.column("evaluations", "test_loss", run)[-1])
        epochs = memory.column("evaluations", "epochs", run)
        assert epochs.tolist() == [0, 40 / per_epoch, 80 / per_epoch, 120 / per_epoch]
        for metric in ("worker_accuracy", "worker_loss"):
            each = memory.column("workers", metric, run).reshape(-1, K)
            mean = memory.column("evaluations", metric, run)
            np.testing.assert_allclose(mean, each.mean(axis=1), 1e-6)
    assert len(set(losses)) == 3


def test_a_constant_and_one_piece_can_be_executed_together() -> None:
    _, tasks = studies.planned(study(0.1, piecewise(0.2, epochs=())))
    for task in tasks:
        execute([prepare(run) for run in task.runs], task.mode)


@pytest.mark.parametrize(
    "protocol",
    [
        {"kind": "gossip", "average": "all"},
        {"kind": "gossip"},
        {"kind": "asynchronous"},
        {"kind": "synchronous"},
        {"kind": "t_synchronous", "t": 2},
    ],
    ids=lambda protocol: protocol.get("average", protocol["kind"]),
)
def test_epochs_are_those_of_the_evaluations(protocol: dict[str, Any]) -> None:
    kind = "psgd" if protocol["kind"] == "gossip" else "sgd"
    two = {"kind": kind, "step_size": piecewise(0.5, 0.1, epochs=(2,)), "batch": 8}
    end = {"stop": {"commits": None, "epochs": 12}}
    every = {"evaluate": {"metrics": ["test_loss"]}}
    plan = prepared(BASE, {"protocol": protocol, "algorithm": two}, end, every)
    rows, *_ = everything(plan.timeline)
    workers = (rows.worker != NO_WORKER).sum(axis=1)[rows.kind == Kind.COMMIT]
    epochs = (
        np.r_[0, np.cumsum(workers)] / plan.timeline.workload.contributions_per_epoch
    )
    algorithm: Any = plan.kernel
    found = jax.vmap(algorithm.step_size.at)(jnp.arange(epochs.size))
    first = int(np.argmax(np.asarray(found) < 0.3))
    assert epochs[first - 1] < 2 <= epochs[first]
