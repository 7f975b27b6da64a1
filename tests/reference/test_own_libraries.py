"""Models of four libraries: the same network gives the numbers of plain functions.

Each has two dense layers, from the weights of the plain functions, so that starts agree
to the bit and runs to rounding. Layers of batch statistics are compared with the rules
of their own library, by hand.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from jax import Array

from stalesim.simulator.engine.optimizers.arrays import arrays_of
from stalesim.simulator.parts import functions
from stalesim.simulator.parts.functions import UserFunction
from stalesim.simulator.problem.data.base import Field
from stalesim.simulator.problem.data.outputs import OutputForm
from stalesim.simulator.problem.models.python.network import (
    OwnNetwork,
    python_network,
    tree_of,
)
from tests.reference.test_own_models import BASE, GOSSIP, assert_same, run

FEATURES, UNITS, CLASSES = 64, 7, 10
FORM, ROW = OutputForm("softmax", CLASSES), (Field("", (FEATURES,)),)
DRAW = np.random.default_rng(1)
ONE = DRAW.normal(size=(FEATURES, UNITS)).astype(np.float32) / 8
TWO = DRAW.normal(size=(UNITS, CLASSES)).astype(np.float32) / 3
HELD = 16
"""Columns of each of four parties."""
FIRST = {FEATURES: ONE, HELD: 2 * ONE[:HELD]}
"""Matrices of the first layer, by the columns that it takes."""


def fixed(array: np.ndarray) -> Any:
    """An initializer of either library."""
    return lambda *_: jnp.asarray(array)


def plain(width: int = FEATURES) -> Any:
    def init(key: Array) -> Any:
        del key
        zeros = jnp.zeros(UNITS), jnp.zeros(CLASSES)
        return [(jnp.asarray(FIRST[width]), zeros[0]), (jnp.asarray(TWO), zeros[1])]

    def apply(weights: Any, x: Array) -> Array:
        (one, first), (two, last) = weights
        return jnp.tanh(x @ one + first[None]) @ two + last[None]

    return init, apply


class OfEquinox(eqx.Module):
    one: eqx.nn.Linear
    two: eqx.nn.Linear

    def __init__(self, width: int = FEATURES) -> None:
        key = jax.random.key(0)
        one = eqx.nn.Linear(width, UNITS, key=key)
        two = eqx.nn.Linear(UNITS, CLASSES, key=key)
        at = lambda layer: (layer.weight, layer.bias)  # noqa: E731
        self.one = eqx.tree_at(at, one, (jnp.asarray(FIRST[width].T), jnp.zeros(UNITS)))
        self.two = eqx.tree_at(at, two, (jnp.asarray(TWO.T), jnp.zeros(CLASSES)))

    def __call__(self, x: Array) -> Array:
        return self.two(jnp.tanh(self.one(x)))


class OfLinen(linen.Module):
    num_outputs: int
    width: int = FEATURES

    @linen.compact
    def __call__(self, x: Array) -> Array:
        first = linen.Dense(UNITS, kernel_init=fixed(FIRST[self.width]))
        hidden = jnp.tanh(first(x))
        return linen.Dense(self.num_outputs, kernel_init=fixed(TWO))(hidden)


class OfNnx(nnx.Module):
    def __init__(self, width: int = FEATURES, *, rngs: nnx.Rngs) -> None:
        first = fixed(FIRST[width])
        self.one = nnx.Linear(width, UNITS, kernel_init=first, rngs=rngs)
        self.two = nnx.Linear(UNITS, CLASSES, kernel_init=fixed(TWO), rngs=rngs)

    def __call__(self, x: Array) -> Array:
        return self.two(jnp.tanh(self.one(x)))


def model(name: str) -> dict[str, Any]:
    return {"problem": {"model": {"kind": "python", "build": f"{__name__}:{name}"}}}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["OfEquinox", "OfLinen", "OfNnx"])
def test_the_same_network_in_every_library(name: str) -> None:
    few = {"stop": {"commits": 30}, "evaluate": {"every": {"commits": 10}}}
    assert_same(run(BASE, few, model("plain")), run(BASE, few, model(name)))


plain_party = partial(plain, HELD)
equinox_party, linen_party = partial(OfEquinox, HELD), partial(OfLinen, width=HELD)


def nnx_party(rngs: nnx.Rngs) -> OfNnx:
    return OfNnx(HELD, rngs=rngs)


COLUMNS = {
    "problem": {
        "data": BASE["problem"]["data"],
        "partition": {"kind": "vertical", "parties": 4},
        "loss": "softmax",
    },
    "algorithm": {"kind": "vafl", "step_size": 0.1, "batch": 7, "upload": "batch"},
    "stop": {"commits": 12},
    "evaluate": {"every": {"commits": 4}, "metrics": ["test_loss", "objective"]},
}


@pytest.mark.long
def test_a_module_of_every_library_at_each_party() -> None:
    """Four parties of 16 columns, whose logits are added up; three engines."""
    changes = [{k: v for k, v in BASE.items() if k != "problem"}, COLUMNS]
    expected = run(*changes, model("plain_party"))
    for name in ("equinox", "linen", "nnx"):
        assert_same(expected, run(*changes, model(f"{name}_party")))
    for mode in ("stepwise", "batched"):
        assert_same(expected, run(*changes, model("linen_party"), mode=mode))


MOMENTUM = 0.8


class LinenNorm(linen.Module):
    @linen.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        norm = linen.BatchNorm(use_running_average=not train, momentum=MOMENTUM)
        return linen.Dense(CLASSES)(norm(x))


class NnxNorm(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.norm = nnx.BatchNorm(FEATURES, momentum=MOMENTUM, rngs=rngs)
        self.last = nnx.Linear(FEATURES, CLASSES, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        return self.last(self.norm(x))


class EquinoxNorm(eqx.Module):
    norm: eqx.nn.BatchNorm
    last: eqx.nn.Linear

    def __init__(self, key: Array) -> None:
        self.norm = eqx.nn.BatchNorm(FEATURES, "batch", momentum=MOMENTUM, mode="batch")
        self.last = eqx.nn.Linear(FEATURES, CLASSES, key=key)

    def __call__(self, x: Array, state: eqx.nn.State) -> tuple[Array, eqx.nn.State]:
        hidden, state = self.norm(x, state)
        return self.last(hidden), state


def equinox_norm(key: Array) -> Any:
    return eqx.nn.make_with_state(EquinoxNorm)(key)


NORMS: dict[str, Any] = {
    "LinenNorm": LinenNorm,
    "NnxNorm": NnxNorm,
    "equinox_norm": equinox_norm,
}


def network(given: Any) -> OwnNetwork:
    return python_network(
        UserFunction(functions.hand_over("model", given), "problem.model.build"),
        FORM,
        ROW,
    )


@pytest.mark.parametrize("given", [OfEquinox, OfLinen, OfNnx])
def test_the_library_says_which_axis_of_matrices_the_inputs_are(given: Any) -> None:
    found = network(given)
    has_inputs_first = (FEATURES, UNITS) in found.leaf_shapes
    assert has_inputs_first or (UNITS, FEATURES) in found.leaf_shapes
    assert arrays_of(found).inputs_first == has_inputs_first


@pytest.mark.parametrize("name", NORMS)
def test_statistics_of_a_batch_become_those_that_the_library_keeps(name: str) -> None:
    own = network(NORMS[name])
    assert not own.takes_key
    assert own.num_statistics >= 2 * FEATURES
    start = own.init(jax.random.key(3))
    x = jnp.asarray(DRAW.normal(2.0, 3.0, size=(50, FEATURES)), "float32")
    outputs, measured = own.train(start, x)
    after = 0.9 * start[-own.num_statistics :] + 0.1 * measured
    kept = [
        np.asarray(leaf) for leaf in jax.tree.leaves(tree_of(after, own.statistics))
    ]
    expected = (1 - MOMENTUM) * np.asarray(x).mean(axis=0)
    assert any(
        leaf.size == FEATURES and np.allclose(leaf.ravel(), expected, atol=1e-4)
        for leaf in kept
    )
    # Outputs are normalised by the batch in training, and by what is kept elsewhere.
    moved = jnp.concatenate([start[: -own.num_statistics], after])
    assert np.abs(outputs - own.train(moved, x)[0]).max() < 1e-3
    assert np.abs(outputs - own.apply(start, x)).max() > 0.1
    assert np.abs(own.apply(moved, x) - own.apply(start, x)).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LinenNorm", "equinox_norm"])
def test_statistics_are_kept(name: str) -> None:
    for change in (GOSSIP, {}, {"algorithm": {"local_steps": 2}}):
        found = run(BASE, change, model(name))
        assert found["test_accuracy"][-1] > found["test_accuracy"][0] + 0.2
    other = {"algorithm": {"kind": "asgd", "step_size": 0.1, "batch": 5}}
    with pytest.raises(ValueError, match=r"no statistics of batches for .* 'asgd'"):
        run(BASE, other, model(name))


class LinenDropout(linen.Module):
    @linen.compact
    def __call__(self, x: Array, deterministic: bool = True) -> Array:
        return linen.Dropout(0.5, deterministic=deterministic)(
            linen.Dense(CLASSES, kernel_init=linen.initializers.ones)(x)
        )


class NnxDropout(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.last = nnx.Linear(
            FEATURES, CLASSES, kernel_init=nnx.initializers.ones, rngs=rngs
        )
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        return self.dropout(self.last(x))


class EquinoxDropout(eqx.Module):
    scale: Array
    dropout: eqx.nn.Dropout

    def __init__(self) -> None:
        self.scale, self.dropout = jnp.ones(CLASSES), eqx.nn.Dropout(0.5)

    def __call__(self, x: Array, key: Array | None = None) -> Array:
        return self.dropout(self.scale * x.sum(), key=key)


def plain_dropout() -> Any:
    def apply(weights: Array, x: Array, key: Array | None = None) -> Array:
        sums = x.sum(axis=1, keepdims=True) * weights[None]
        if key is None:
            return sums
        return 2 * sums * jax.random.bernoulli(key, 0.5, sums.shape)

    return lambda key: jnp.ones(CLASSES), apply


@pytest.mark.parametrize(
    "given", [LinenDropout, NnxDropout, EquinoxDropout, plain_dropout]
)
def test_dropout_draws_by_the_key_in_training_alone(given: Any) -> None:
    own = network(given)
    assert own.takes_key
    weights = own.init(jax.random.key(0))
    x = jnp.ones((40, FEATURES))
    np.testing.assert_allclose(own.apply(weights, x), np.full((CLASSES, 40), FEATURES))
    one, two, again = (
        np.asarray(own.train(weights, x, jax.random.key(key))[0]) for key in (1, 2, 1)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != two).any()
    assert set(np.unique(one.round(3))) == {0.0, 2.0 * FEATURES}
    assert 0.35 < (one == 0).mean() < 0.65
    assert 0 < (one[:, 0] == 0).mean() < 1
    assert (one[0] != one[1]).any()


@pytest.mark.parametrize("given", [OfEquinox(), OfNnx(rngs=nnx.Rngs(0)), OfLinen(10)])
def test_a_module_that_is_made_already_is_taken_as_it_is(given: Any) -> None:
    own, made = network(given), network(type(given))
    x = jnp.asarray(DRAW.normal(size=(5, FEATURES)), "float32")
    weights = own.init(jax.random.key(1))
    assert weights.shape == made.init(jax.random.key(1)).shape
    expected = np.tanh(np.asarray(x) @ ONE) @ TWO
    np.testing.assert_allclose(own.apply(weights, x).T, expected, rtol=1e-4, atol=1e-5)
