"""A loss by which rows of a batch look at each other: ours, and a plain one.

The plain one goes row by row; both are rounded.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml
from jax import Array

from stalesim.simulator.files.timeline import Kind
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.keys import key_of
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.studies import planned
from tests.runs import execute, prepared, rows_of
from tests.support import merge

COMMITS, STEP, HEAT = 12, 0.5, 0.2
YAML = """
name: contrastive
clients: {compute: {law: expon, scale: 1.0}}
problem:
  data: {kind: digits}
  partition: {kind: iid, clients: 8}
  model: {kind: python, build: "tests.contrastive:two_views"}
  loss: "tests.contrastive:info_nce"
protocol: {kind: asynchronous}
algorithm: {kind: sgd, step_size: 0.1, batch: 32}
stop: {commits: 400}
evaluate: {every: {commits: 50}, metrics: [test_loss]}
"""
SMALL: dict[str, Any] = {"step_size": STEP, "batch": 6}
BASE: dict[str, Any] = merge(
    yaml.safe_load(YAML),
    {
        "problem": {
            "data": {"limit": 120},
            "partition": {"clients": 4},
            "l2": 0.0,
        },
        "algorithm": SMALL,
        "stop": {"commits": COMMITS},
        "evaluate": {"every": {"commits": 4}, "metrics": ["test_loss", "objective"]},
        "engine": {"precision": "float64", "chunk": 8},
    },
)
"""The scenario, of few rows, clients and commits."""


def row_by_row(weights: Array, x: Array) -> Array:
    """The mean over rows of the cross-entropy of a half among all of the batch."""
    upper, lower = x[:, :32] @ weights[0], x[:, 32:] @ weights[1]
    lengths = jnp.sqrt((lower**2).sum(axis=1) + 1e-6)

    def of_row(i: Array) -> Array:
        own = jnp.sqrt((upper[i] ** 2).sum() + 1e-6)
        likeness = lower @ upper[i] / (own * lengths) / HEAT
        return jnp.log(jnp.exp(likeness).sum()) - likeness[i]

    return jax.vmap(of_row)(jnp.arange(len(x))).mean()


@pytest.mark.slow
def test_stale_steps_are_those_of_plain_jax() -> None:
    with jax.enable_x64(True):
        plan = prepared(BASE)
        memory, _ = execute([plan])
        rows, samples = rows_of(plan)
        x, x_test = (np.asarray(a) for a in (plan.problem.x, plan.problem.x_test))
        graded = jax.jit(jax.value_and_grad(row_by_row))
        versions = [plan.problem.start(key_of(1)).reshape(2, 32, 8)]
        losses = []
        for row in np.flatnonzero(rows.kind == Kind.COMMIT):
            read = versions[rows.read_version[row, 0]]
            loss, slope = graded(read, x[samples[row, 0]])
            losses.append(loss)
            versions.append(versions[-1] - STEP * slope)
        whole = [float(row_by_row(versions[k], x_test)) for k in (0, 4, 8, 12)]
    assert rows.version.max() == COMMITS - 1
    assert (rows.version[:, None] > rows.read_version).any()  # some are stale
    found = memory.column("commits", "loss")
    # Losses of commits are kept, and starts are drawn, in single precision.
    np.testing.assert_allclose(found, losses, rtol=1e-6)
    measured = memory.column("evaluations", "test_loss")
    np.testing.assert_allclose(measured, whole, rtol=1e-7)
    assert whole[-1] < whole[0]


CLIPPED = {"clip_bound": 1.0, "multiplier": 1.0}
FEW = {"problem": {"partition": {"kind": "sizes", "clients": 4, "weights": "m"}}}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "epochs": (
        {
            "protocol": {"kind": "synchronous"},
            "algorithm": {**SMALL, "kind": "fed_avg", "local_epochs": 1},
        },
        "batches are filled up",
    ),
    "speeds": ({"algorithm": {"speeds": "m", "local_steps": 4}}, "batches are filled"),
    "small shares": (merge(FEW, {"algorithm": {"batch": 20}}), "batches are filled"),
    "clipped samples": ({"algorithm": {"mechanism": CLIPPED}}, "gradient is clipped"),
    "clipped in gossip": (
        {
            "protocol": {"kind": "gossip"},
            "algorithm": {
                **SMALL,
                "kind": "adp2sgd",
                "noise": {"sigma": 1.0, "clip": "sample"},
            },
        },
        "gradient is clipped",
    ),
}
"""What asks for a loss of each row by itself, and what is said of one without."""


def planning(*changes: dict[str, Any]) -> None:
    """Plans a run, as a dry run does."""
    tree = BASE
    for change in changes:
        tree = merge(tree, change)
    planned(Scenario.model_validate(tree))


@pytest.mark.parametrize("name", REFUSED)
def test_rows_that_must_stand_for_themselves_are_refused(name: str) -> None:
    change, says = REFUSED[name]
    with pytest.raises(ScenarioError, match=says) as error:
        planning(change)
    assert str(error.value).startswith("problem.loss must give each row a loss of its ")
    assert "\n" not in str(error.value)
    # The same with a loss of single rows.
    planning(change, {"problem": {"loss": "tests.own_models:energy"}})


def test_what_is_sent_may_be_clipped() -> None:
    planning({"algorithm": {"mechanism": {**CLIPPED, "clip": "contribution"}}})


def test_a_model_whose_rows_look_at_each_other_is_named() -> None:
    change, _ = REFUSED["epochs"]
    model = {"kind": "python", "build": "tests.own_models:centred"}
    with pytest.raises(
        ScenarioError, match=r"^problem\.model\.build must give each row"
    ):
        planning(change, {"problem": {"model": model, "loss": "softmax"}})


def test_sigma_is_not_taken_from_losses_of_no_row() -> None:
    theory = {"algorithm": {"kind": "asgd", "batch": 6, "sigma": "data"}}
    with pytest.raises(ScenarioError, match=r"problem\.loss must .* give these"):
        prepared(BASE, theory)
