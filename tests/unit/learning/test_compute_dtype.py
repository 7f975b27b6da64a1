"""Networks that compute in bfloat16, from weights that stay in float32.

A number in bfloat16 has 8 bits: rounding is wrong by 2**-9 of it. A logit is a product
of rounded weights and rows, rounded itself, and so is an entry of a gradient, of a
rounded slope: each wrong by ROUNDED of the sum of absolute products at most. Products
are summed in float32, which adds 2**-24 for each of at most 65.
"""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.learning import learning
from stalesim.simulator.problem.models.mixed import (
    MixedClassifier,
    MixedEmbedding,
    mixed,
)
from stalesim.simulator.problem.models.party import PartyNetwork
from stalesim.simulator.problem.models.purity import programs_of
from stalesim.simulator.scenario.scenario import Engine, Problem
from tests.runs import execute, prepared
from tests.support import scenario

ROUNDED = 1.01 * 3 * 2**-9 + 65 * 2**-24
STEP, COMMITS = 0.003, 8
BFLOAT16 = {"engine": {"compute_dtype": "bfloat16"}}
DIGITS: dict[str, Any] = {
    "problem": {
        "data": {"kind": "digits", "scale": "unit", "limit": 300},
        "partition": {"kind": "iid", "clients": 4},
        "l2": 0.0,
    },
    "algorithm": {"kind": "sgd", "step_size": STEP, "batch": 11},
    "stop": {"commits": COMMITS},
    "evaluate": {"every": {"commits": COMMITS}, "metrics": ["test_loss"]},
}
FAMILIES: dict[str, dict[str, Any]] = {
    "rows": {},
    "gossip": {
        "protocol": {"kind": "gossip"},
        "algorithm": {"kind": "psgd", "step_size": STEP, "batch": 11},
    },
    "FedBuff, local steps": {
        "protocol": {"kind": "buffered", "size": 2},
        "algorithm": {
            "kind": "fed_buff",
            "step_size": STEP,
            "local_steps": 3,
            "batch": 11,
        },
    },
    "VAFL": {
        "problem": {"partition": {"kind": "vertical", "parties": 4}},
        "algorithm": {
            "kind": "vafl",
            "step_size": STEP,
            "batch": 11,
            "upload": "batch",
        },
    },
}


def loss_wrong_by(row: float, gradients: int) -> float:
    """Returns by how much the loss of a linear model may differ after some steps.

    Features are in [0, 1], and the model starts at 0. Let all weights differ by e at
    most, and be w at most. Logits then differ by r = row (ROUNDED w + e); slopes, whose
    derivatives by the logits sum up to 1/2 at most, by r / 2, and gradients by
    r / 2 + ROUNDED. Averaging makes no maximum larger. The loss changes at most twice
    as much as the logits.
    """
    wrong = largest = 0.0
    for _ in range(gradients):
        largest += STEP
        logits = row * (ROUNDED * largest + wrong)
        wrong += STEP * (logits / 2 + ROUNDED)
    return 2 * row * (ROUNDED * largest + wrong)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_trace_is_wrong_by_rounding_alone(family) -> None:
    ends = []
    for changes in ({}, BFLOAT16):
        plan = prepared(DIGITS, FAMILIES[family], changes)
        state = plan.kernel.init(plan.problem, jax.random.key(0))
        types = {leaf.dtype for leaf in jax.tree.leaves(state)}
        assert jnp.bfloat16 not in types
        memory, _ = execute([plan])
        ends.append(memory.column("evaluations", "test_loss"))
    steps = COMMITS * (3 if "local" in family else 1)
    row = 1 + 27.07  # the largest sum of a row, and the bias
    assert abs(ends[0][-1] - ends[1][-1]) <= loss_wrong_by(row, steps)
    assert ends[0][-1] != ends[1][-1]
    assert ends[1][-1] < ends[1][0]  # it learns


MODELS = {
    "linear": {},
    "dense": {"hidden": [8]},
    "cnn": {"kernel": 2, "channels": [2, 2]},
    "transformer": {"layers": 1, "heads": 2, "width": 4},
}


def products(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("dot_general", "conv_general_dilated"):
            yield equation.outvars[0].aval.dtype
        for inner in programs_of(equation):
            yield from products(inner)


@pytest.mark.parametrize("kind", MODELS)
def test_all_products_are_short_and_gradients_are_not(kind) -> None:
    model = Problem.model_validate(
        {
            "data": {"kind": "digits"},
            "partition": {"kind": "iid", "clients": 2},
            "model": {"kind": kind, **MODELS[kind]},
        }
    ).model
    network = mixed(
        model.make(10, 64, "horizontal"), converts_rows=not model.takes_tokens
    )
    weights = network.init(jax.random.key(0))
    x = jnp.asarray(network.features(np.zeros((3, 64), np.float32)))

    def loss(weights: Any) -> Any:
        outputs, statistics = network.train(weights, x)
        assert outputs.dtype == statistics.dtype == jnp.float32
        return (outputs**2).sum()

    program = jax.make_jaxpr(jax.grad(loss))(weights)
    types = list(products(program.jaxpr))
    assert len(types) >= 2
    assert {*types} == {jnp.dtype(jnp.bfloat16)}
    assert program.out_avals[0].dtype == jnp.float32


def test_numbers_of_tokens_are_not_rounded() -> None:
    class Look:
        """A network that says which tokens it got."""

        def features(self, x: Any) -> Any:
            return x

        def apply(self, weights: Any, x: Any) -> Any:
            return weights[x.astype(jnp.int32)]

    weights, x = jnp.arange(600.0) % 2, jnp.array([257.0, 258.0])
    found = mixed(Look(), converts_rows=False).apply(weights, x)
    np.testing.assert_array_equal(found, [1, 0])


def test_it_is_off_unless_it_is_asked_for() -> None:
    assert Engine().compute_dtype is None
    own = {"kind": "python", "build": "tests.own_models:linear"}
    vertical = FAMILIES["VAFL"]
    deep = {
        "problem": {
            "model": {"kind": "dense", "hidden": [4]},
            "server": {"width": 3},
        }
    }
    for changes, kind, rows in (
        ({}, MixedClassifier, True),
        ({"problem": {"model": own}}, MixedClassifier, False),
    ):
        numerics = learning(scenario(DIGITS, changes).problem).numerics
        plain = numerics.problem()
        short = numerics.problem(compute_dtype="bfloat16")
        assert short.model == kind(plain.model, rows)
    numerics = learning(scenario(DIGITS, vertical, deep).problem).numerics
    short = numerics.problem(compute_dtype="bfloat16")
    assert isinstance(short.embedding, PartyNetwork)
    assert isinstance(short.embedding.network, MixedClassifier)
    assert isinstance(short.server, MixedEmbedding)


class Counting(eqx.Module):
    """A linear model that normalises its batch."""

    norm: eqx.nn.BatchNorm
    last: eqx.nn.Linear

    def __init__(self, key: jax.Array) -> None:
        self.norm = eqx.nn.BatchNorm(64, "batch", mode="batch")
        self.last = eqx.nn.Linear(64, 10, key=key)

    def __call__(self, x: jax.Array, state: Any) -> Any:
        hidden, state = self.norm(x, state)
        return self.last(hidden), state


def counting(key: jax.Array) -> Any:
    return eqx.nn.make_with_state(Counting)(key)


def test_what_cannot_be_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match=r"compute_dtype must be left out with prec"):
        Engine(precision="float64", compute_dtype="bfloat16")
    model = {"kind": "python", "build": f"{__name__}:counting"}
    with pytest.raises(ScenarioError, match=r"engine\.compute_dtype must be left out"):
        prepared(DIGITS, BFLOAT16, {"problem": {"model": model}})
