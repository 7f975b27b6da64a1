"""A model of one's own that computes in half precision, from weights in single.

Rounding to bfloat16, which has 8 bits, is wrong by 2**-9 at most. Products of rounded
numbers, summed in float32, are then wrong by (2 * 2**-9 + 2**-18) sum |x_i w_i|;
float32 adds less than 64 * 2**-24 of that, and the sum is rounded once more.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.config.functions import UserFunction
from stalesim.simulator.data.base import Field
from stalesim.simulator.data.outputs import OutputForm
from stalesim.simulator.models.python.network import OwnNetwork, python_network
from tests.reference.test_own_models import BASE, BUFFERED
from tests.runs import execute, prepared

FEATURES, CLASSES = 64, 10
ROUNDED = 1.01 * 3 * 2**-9 + FEATURES * 2**-24


def mixed(num_outputs: int, num_features: int) -> Any:
    """The linear model in bfloat16."""

    def init(key: Any) -> dict[str, Any]:
        return {"matrix": 0.1 * jax.random.normal(key, (num_features, num_outputs))}

    def apply(weights: dict[str, Any], x: Any) -> Any:
        half = jnp.bfloat16
        rows = x.reshape(len(x), -1).astype(half)
        return (rows @ weights["matrix"].astype(half)).astype(jnp.float32)

    return init, apply


def network() -> OwnNetwork:
    named = UserFunction(f"{__name__}:mixed", "problem.model.build")
    rows = (Field("", (FEATURES,)),)
    return python_network(named, OutputForm("softmax", CLASSES), rows)


def test_outputs_are_wrong_by_rounding_alone() -> None:
    own, draw = network(), np.random.default_rng(1)
    weights = own.init(jax.random.key(1))
    matrix = np.asarray(weights, np.float64).reshape(FEATURES, CLASSES)
    x = draw.normal(size=(30, FEATURES)).astype(np.float32)
    found = np.asarray(own.apply(weights, jnp.asarray(x)), np.float64).T
    most = ROUNDED * (np.abs(x) @ np.abs(matrix))
    wrong = np.abs(found - x @ matrix)
    assert (wrong <= most).all()
    assert wrong.max() > 1e-4  # it is in half precision


def test_gradients_are_in_single_precision_and_wrong_by_rounding_alone() -> None:
    own, draw = network(), np.random.default_rng(2)
    weights = own.init(jax.random.key(1))
    x = draw.normal(size=(30, FEATURES)).astype(np.float32)
    back = draw.normal(size=(CLASSES, 30)).astype(np.float32)
    slope = jax.grad(lambda w: jnp.vdot(own.apply(w, jnp.asarray(x)), back))(weights)
    assert slope.dtype == jnp.float32
    expected = (x.T @ back.T).reshape(-1)
    most = ROUNDED * (np.abs(x.T) @ np.abs(back.T)).reshape(-1)
    assert (np.abs(np.asarray(slope) - expected) <= most).all()


@pytest.mark.slow
def test_registers_stay_in_single_precision_and_runs_end_alike() -> None:
    single = {"engine": {"precision": "float32"}, "stop": {"commits": 60}}
    ends = []
    for build in (f"{__name__}:mixed", "tests.own_models:linear"):
        own = {"problem": {"model": {"kind": "python", "build": build}}}
        plan = prepared(BASE, BUFFERED, single, own)
        state = plan.kernel.init(plan.problem, jax.random.key(0))
        assert state.registers.dtype == jnp.float32
        memory, _ = execute([plan])
        ends.append(memory.column("evaluations", "test_loss")[-1])
    # Other starts as well: near, but not the same.
    assert ends[0] == pytest.approx(ends[1], rel=0.2)
    assert ends[0] != ends[1]
