"""Which matrices Muon moves: hidden ones, read off the program of any model."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.algorithms.optimizers.arrays import ModelArrays, arrays_of
from stalesim.simulator.algorithms.optimizers.part import Optax
from stalesim.simulator.algorithms.optimizers.rule import rule_of
from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.config.functions import UserFunction
from stalesim.simulator.data.base import Field
from stalesim.simulator.data.outputs import OutputForm
from stalesim.simulator.models.dense.network import DenseNetwork
from stalesim.simulator.models.lstm.network import LstmNetwork
from stalesim.simulator.models.lstm.part import Lstm
from stalesim.simulator.models.mixed import mixed
from stalesim.simulator.models.parts import size
from stalesim.simulator.models.python.network import python_network
from stalesim.simulator.models.transformer.network import TransformerNetwork
from stalesim.simulator.models.transformer.part import Transformer

DEEP = DenseNetwork((5, 6, 6, 7, 3))


def hidden(model: Any, rows: tuple[int, ...]) -> list[tuple[int, ...]]:
    arrays = arrays_of(model, rows)
    assert arrays.shapes is not None
    pairs = zip(arrays.shapes, arrays.hidden(), strict=True)
    return [shape for shape, one in pairs if one]


@pytest.mark.parametrize("tied", [True, False])
def test_of_a_transformer_they_are_those_of_its_layers(tied: bool) -> None:
    """Blocks as long as layers are wide, so that sizes alone do not tell them."""
    config = Transformer(kind="transformer", layers=2, heads=2, width=8, tied=tied)
    network = TransformerNetwork(config, 8, 8)
    of_layer = [(8, 8)] * 4 + [(32, 8), (8, 32)]
    assert hidden(network, (-1, 8)) == of_layer * 2
    flags = arrays_of(network, (-1, 8)).hidden()
    assert flags[:2] == (False, False)  # embeddings of tokens and of places
    assert flags[-1] is False
    assert hidden(mixed(network, converts_rows=False), (-1, 8)) == of_layer * 2


def test_of_layers_they_are_those_between_the_first_and_the_last() -> None:
    assert hidden(DEEP, (-1, 5)) == [(6, 6), (7, 6)]
    recurrent = LstmNetwork(Lstm(kind="lstm", frames=4, cells=3, layers=2), 5, 8)
    assert hidden(recurrent, (-1, 8)) == [(256, 6)]  # stacks of both ways are no matrix


class TwoWays:
    """A skip from the first layer to the outputs, and a loop over one matrix."""

    shapes = ((4, 2), (5, 4), (4, 4), (4, 3), (3, 2))

    def apply(self, weights: jax.Array, x: jax.Array) -> jax.Array:
        last, wide, again, first, skip = (
            jnp.reshape(part, shape)
            for part, shape in zip(
                jnp.split(weights, np.cumsum([8, 20, 16, 12])), self.shapes, strict=True
            )
        )
        h = jnp.tanh(x @ first.T)
        h, _ = jax.lax.scan(lambda h, _: (jnp.tanh(h @ again), None), h, None, length=3)
        return (h @ wide.T[:, :4]) @ last + x @ skip


def test_loops_slices_skips_and_any_order_are_followed() -> None:
    assert hidden(TwoWays(), (-1, 3)) == [(5, 4), (4, 4)]


class Named(eqx.Module):
    """Its leaves are in the order of fields, which is not that of layers."""

    last: eqx.nn.Linear
    middle: eqx.nn.Linear
    table: eqx.nn.Embedding

    def __init__(self, *, key: jax.Array) -> None:
        self.last = eqx.nn.Linear(4, 3, key=key)
        self.middle = eqx.nn.Linear(5, 4, key=key)
        self.table = eqx.nn.Embedding(7, 5, key=key)

    def __call__(self, x: jax.Array) -> jax.Array:
        of_tokens = jax.vmap(self.table)(x).sum(axis=0)
        return self.last(jax.nn.relu(self.middle(of_tokens)))


def test_of_a_module_of_ones_own_they_are_found_by_what_it_does() -> None:
    named, form = UserFunction(f"{__name__}:Named", "model"), OutputForm("softmax", 3)
    network = python_network(named, form, (Field("", (2,), whole=True),))
    assert hidden(network, (-1, 2)) == [(4, 5)]


def test_hidden_matrices_are_turned_and_the_rest_is_adams() -> None:
    """The first step of Adam is the sign of the gradient; Muon's is orthogonal."""
    plain = {"kind": "muon", "learning_rate": 0.1, "nesterov": False}
    made = rule_of(Optax.model_validate(plain))
    assert made is not None
    arrays = arrays_of(DEEP, (-1, 5))
    assert arrays.shapes is not None
    draw = np.random.default_rng(0)
    weights, way = (jnp.asarray(draw.standard_normal(size(DEEP.shapes))) for _ in "ab")
    state = made.init(weights, arrays)
    moves, _ = made.update(way, state, weights, jnp.int32(0), arrays)
    start = 0
    for shape, turned in zip(DEEP.shapes, arrays.hidden(), strict=True):
        part = slice(start, start := start + int(np.prod(shape)))
        of_sign = np.allclose(moves[part] / 0.1, np.sign(way[part]), rtol=1e-4)
        assert of_sign != turned, shape
        if turned:  # five steps of its iteration leave singular values near 1
            found = np.linalg.svd(np.reshape(moves[part], shape) / 0.1)[1]
            assert ((found > 0.5) & (found < 1.5)).all()


def test_a_model_without_hidden_matrices_is_refused() -> None:
    shallow = DenseNetwork((5, 6, 3))
    with pytest.raises(ScenarioError, match=r"without hidden matrices.*matrices: all"):
        arrays_of(shallow, (-1, 5)).hidden()
    assert not any(arrays_of(shallow, (-1, 5), whole=False).hidden())
    assert ModelArrays(((3,),)).hidden() == (False,)
    made = rule_of(Optax.model_validate({"kind": "muon", "learning_rate": 0.1}))
    assert made is not None
    with pytest.raises(ScenarioError, match="without hidden matrices"):
        made.init(jnp.zeros((3, 5)), arrays_of(object(), (-1, 5)))  # a linear model


def test_the_default_is_written_so_that_studies_of_all_matrices_are_others() -> None:
    written = [
        Optax.model_validate(
            {"kind": "muon", "learning_rate": 0.1, **more}
        ).model_dump()
        for more in ({}, {"matrices": "all"})
    ]
    assert [each["matrices"] for each in written] == ["hidden", "all"]
    assert [Optax.model_validate(each).model_dump() for each in written] == written
    plain = Optax.model_validate({"kind": "adamw", "learning_rate": 0.1}).model_dump()
    assert "matrices" not in plain
