"""Batch statistics at a server against a twin by hand, in every mode.

Both compute in float64; a run of 30 commits adds some 1e4 terms of order one in another
order, and Flax takes a variance as the difference of two means: 1e-9 relative.
"""

from typing import Any

import jax
import numpy as np
import pytest
from flax import linen
from jax import Array

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.engine.execute import Program
from stalesim.simulator.engine.runner import Runner
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.simulation import Prepared, _row_stream, key_of
from stalesim.simulator.timeline import NO_WORKER, Kind
from tests.reference import statistics_twin as twin
from tests.reference.test_own_models import assert_same, run
from tests.runs import prepared, rows_of

CLASSES = 10


class Normalised(linen.Module):
    """Inputs normalised by the batch, and a linear layer."""

    @linen.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        norm = linen.BatchNorm(
            use_running_average=not train,
            momentum=twin.MOMENTUM,
            epsilon=twin.EPSILON,
            use_scale=False,
            use_bias=False,
        )
        return linen.Dense(CLASSES)(norm(x))


OWN = {"kind": "python", "build": f"{__name__}:Normalised"}
BASE: dict[str, Any] = {
    "problem": {
        "data": {"kind": "digits", "limit": 200, "scale": "unit"},
        "partition": {"kind": "iid", "clients": 5},
        "model": OWN,
        "l2": 0.0,
    },
    "clients": {"compute": {"law": "expon", "scale": 1.0}},
    "algorithm": {"kind": "sgd", "step_size": 0.3, "batch": 11},
    "stop": {"commits": 30},
    "evaluate": {"every": {"commits": 10}, "metrics": ["test_loss", "test_accuracy"]},
    "engine": {"precision": "float64", "chunk": 16},
}
OLD = {"kind": "polynomial", "exponent": 0.7}
CASES: dict[str, dict[str, Any]] = {
    "asynchronous": {},
    "by age": {"algorithm": {"weight": OLD}},
    "t-synchronous": {"protocol": {"kind": "t_synchronous", "t": 3}},
    "federated averaging": {
        "protocol": {"kind": "synchronous"},
        "algorithm": {"step_size": 1.0, "local_step_size": 0.1, "local_steps": 3},
    },
    "FedBuff": {
        "protocol": {"kind": "buffered", "size": 3},
        "algorithm": {
            "kind": "fed_buff",
            "step_size": 0.1,
            "server_step_size": 0.7,
            "local_steps": 2,
            "weight": OLD,
            "batch": 11,
        },
    },
    "FedAsync": {
        "algorithm": {
            "kind": "fed_async",
            "step_size": 0.2,
            "mixing": 0.6,
            "local_steps": 2,
            "proximal": 0.1,
            "weight": OLD,
            "batch": 11,
        }
    },
}


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def model_of(flat: Any) -> twin.Model:
    parts = np.split(np.asarray(flat), np.cumsum([CLASSES, 64 * CLASSES, 64]))
    return twin.Model(parts[0], parts[1].reshape(64, CLASSES), parts[2], parts[3])


def twin_of(plan: Prepared) -> list[twin.Model]:
    problem, config = plan.problem, plan.run.scenario.algorithm
    rows, samples = rows_of(plan)
    program = []
    for row in range(rows.time.size):
        here = np.flatnonzero(rows.worker[row] != NO_WORKER)
        own = [samples[row, min(c, samples.shape[1] - 1)] for c in here]
        contributions = [
            twin.Contribution(
                int(rows.read_version[row, column]),
                list(np.reshape(ids, (config.local_steps, -1))),
            )
            for column, ids in zip(here, own, strict=True)
        ]
        program.append((rows.kind[row] == Kind.COMMIT, contributions))
    weight = config.weight
    local = getattr(config, "local_step_size", None) or config.step_size
    options = twin.Options(
        config.kind,
        config.step_size,
        local,
        server_step_size=getattr(config, "server_step_size", 1.0),
        mixing=getattr(config, "mixing", 1.0),
        proximal=getattr(config, "proximal", 0.0),
        exponent=getattr(weight, "exponent", 0.0),
    )
    start = model_of(problem.start(key_of(plan.run.seed)))
    x, y = np.asarray(problem.x), np.asarray(problem.y)
    return twin.run(x, y, start, program, options)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_the_twin(name: str) -> None:
    plan = prepared(BASE, CASES[name])
    versions = twin_of(plan)
    assert len(versions) > 20
    program = Program(plan.kernel, plan.problem, stepwise=False)
    runner = Runner(program, [_row_stream(plan, 30)], [plan], 30)
    list(runner.records())
    found = model_of(runner._carry.state.weights)
    for one, other in zip(found, versions[-1], strict=True):
        np.testing.assert_allclose(one, other, 1e-9, 1e-10)
    assert np.abs(found.mean - versions[0].mean).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t-synchronous", "FedBuff", "FedAsync"])
def test_three_engines_agree(name: str) -> None:
    adam = {"algorithm": {"local_optimizer": {"kind": "adamw", "learning_rate": 0.01}}}
    change = CASES[name] if name != "FedBuff" else merge(CASES[name], adam)
    if name == "FedBuff":
        del change["algorithm"]["step_size"]
    found = [run(BASE, change, mode=m) for m in ("compiled", "stepwise", "batched")]
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])


def test_an_optimiser_of_the_server_leaves_statistics_alone() -> None:
    """Weight decay would shrink them."""
    plain, decayed = (
        prepared(BASE, {"algorithm": change})
        for change in (
            {},
            {
                "step_size": None,
                "optimizer": {
                    "kind": "adamw", "learning_rate": 0.1, "weight_decay": 5.0
                },
            },
        )
    )  # fmt: skip
    ends = []
    for plan in (plain, decayed):
        program = Program(plan.kernel, plan.problem, stepwise=False)
        runner = Runner(program, [_row_stream(plan, 30)], [plan], 30)
        list(runner.records())
        ends.append(model_of(runner._carry.state.weights))
    # They depend on the batches alone.
    np.testing.assert_allclose(ends[0].mean, ends[1].mean, 1e-9, 1e-10)
    np.testing.assert_allclose(ends[0].variance, ends[1].variance, 1e-9, 1e-10)


def test_they_are_not_sent_as_if_they_were_private() -> None:
    noisy = {"algorithm": {"mechanism": {"clip_bound": 1.0, "multiplier": 0.5}}}
    with pytest.raises(ValueError, match=r"mechanism must be left out .* 128 numbers"):
        prepared(BASE, noisy)


@pytest.mark.parametrize(
    "uneven",
    [
        {"kind": "fed_avg", "local_epochs": 1},
        {"kind": "fed_avg", "batch": 41, "local_steps": 2},
    ],
    ids=["epochs", "few rows"],
)
def test_padding_must_not_be_counted(uneven: dict[str, Any]) -> None:
    """The last batch of an epoch is short, and so are batches larger than a share."""
    waits = {"protocol": {"kind": "synchronous"}}
    with pytest.raises(ScenarioError, match="no statistics of batches where clients"):
        prepared(BASE, waits, {"algorithm": {"step_size": 0.3, "batch": 11} | uneven})
