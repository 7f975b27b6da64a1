"""Batch statistics at a server against a twin by hand, in every mode.

The model normalises its inputs by the batch and has one linear layer, so that neither
mean nor variance depends on weights. A local step makes of the running statistics r

    r <- MOMENTUM r + (1 - MOMENTUM) (m, v)

with (m, v) those of the batch. A client ends with r_i, and a commit of n contributions
with weights w_i makes of the server's

    r <- mean_i of (1 - w_i) r + w_i r_i,   FedAsync with mixing * w_i for w_i

so that with w = 1 statistics are averaged as models are in federated averaging. All
else is as in `server_twin`.

Both compute in float64; a run of 30 commits adds some 1e4 terms of order one in another
order, and Flax takes a variance as the difference of two means: 1e-9 relative.
"""

from typing import Any

import jax
import numpy as np
import pytest
from flax import linen
from jax import Array

from stalesim.simulator.engine.execute import Program
from stalesim.simulator.engine.runner import Runner
from stalesim.simulator.engine.simulation import Prepared, _row_stream, key_of
from stalesim.simulator.parts.errors import ScenarioError
from tests.reference import server_twin as twin
from tests.reference.methods_support import jobs_of, problem_of
from tests.runs import prepared

CLASSES, INPUTS = 10, 64
KEPT = 2 * INPUTS
MOMENTUM, EPSILON = 0.8, 1e-3


class Normalised(linen.Module):
    """Inputs normalised by the batch, and a linear layer."""

    @linen.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        norm = linen.BatchNorm(
            use_running_average=not train,
            momentum=MOMENTUM,
            epsilon=EPSILON,
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


def normalised_work(proximal: float | None = None, **_: Any) -> twin.Stage:
    """Local steps; a model is a bias, a matrix, means and variances in one vector."""

    def stage(server: twin.Server, jobs: list[twin.Job]) -> None:
        x, y = server.problem.features, server.problem.labels.astype(int)
        for job in jobs:
            own, job.message = job.read.copy(), np.zeros_like(job.read)
            for batch in job.batches:
                bias, matrix, _ = np.split(own, [CLASSES, len(own) - KEPT])
                found = np.array([x[batch].mean(axis=0), x[batch].var(axis=0)])
                z = (x[batch] - found[0]) / np.sqrt(found[1] + EPSILON)
                p = np.exp(z @ matrix.reshape(INPUTS, CLASSES) + bias)
                wrong = p / p.sum(axis=1, keepdims=True) - np.eye(CLASSES)[y[batch]]
                slopes = wrong.mean(axis=0), (z.T @ wrong / len(batch)).ravel()
                gradient = np.concatenate([*slopes, np.zeros(KEPT)])
                gradient[:-KEPT] += (proximal or 0) * (own - job.read)[:-KEPT]
                own = own - server.local_step * gradient
                own[-KEPT:] = MOMENTUM * own[-KEPT:] + (1 - MOMENTUM) * found.ravel()
                job.message = job.message + gradient
            job.statistics = own[-KEPT:]

    return stage


def averaged_statistics(mixing: float) -> twin.Stage:
    def stage(server: twin.Server, jobs: list[twin.Job]) -> None:
        before = server.models[-2][-KEPT:]
        shares = [mixing * job.weight for job in jobs]
        kept = [
            (1 - share) * before + share * job.statistics
            for share, job in zip(shares, jobs, strict=True)
        ]
        server.models[-1][-KEPT:] = np.mean(kept, axis=0)

    return stage


def end_of(plan: Prepared) -> np.ndarray:
    """Returns the last model of a run."""
    program = Program(plan.kernel, plan.problem, stepwise=False)
    runner = Runner(program, [_row_stream(plan, 30)], [plan], 30)
    list(runner.records())
    return np.asarray(runner._carry.state.weights)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_the_twin(name: str) -> None:
    plan = prepared(BASE, CASES[name])
    o = plan.scenario.algorithm.model_dump()
    stages = twin.STAGES | {"local_work": ("arrival", normalised_work)}
    chain = twin.chain_of(twin.opened(o), stages)
    chain.commit.append(averaged_statistics(o.get("mixing", 1.0)))
    start = np.asarray(plan.problem.start(key_of(plan.run.seed)))
    server = twin.Server(problem_of(plan), start, 5, *twin.rates_of(o))
    twin.play(server, chain, jobs_of(plan))
    assert server.commits == 30
    np.testing.assert_allclose(end_of(plan), server.models[-1], 1e-9, 1e-10)
    assert np.abs(server.models[-1] - start)[-KEPT:].max() > 0.1


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
    ends = [end_of(plan)[-KEPT:] for plan in (plain, decayed)]
    # They depend on the batches alone.
    np.testing.assert_allclose(*ends, 1e-9, 1e-10)


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
