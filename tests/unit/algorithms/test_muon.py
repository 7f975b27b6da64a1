"""Which matrices Muon moves: those between a model's first layer and its last."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.catalogue.models.lstm.network import LstmNetwork
from stalesim.simulator.catalogue.models.lstm.part import Lstm
from stalesim.simulator.catalogue.models.transformer.network import TransformerNetwork
from stalesim.simulator.catalogue.models.transformer.part import Transformer
from stalesim.simulator.engine.optimizers.arrays import ModelArrays, arrays_of
from stalesim.simulator.engine.optimizers.part import Optax
from stalesim.simulator.engine.optimizers.rule import rule_of
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.parts.functions import UserFunction
from stalesim.simulator.problem.data.base import Field
from stalesim.simulator.problem.data.outputs import OutputForm
from stalesim.simulator.problem.models.dense.network import DenseNetwork
from stalesim.simulator.problem.models.parts import size
from stalesim.simulator.problem.models.python.network import python_network

DEEP = DenseNetwork((5, 6, 6, 7, 3))


def hidden(model: Any) -> list[tuple[int, ...]]:
    arrays = arrays_of(model)
    assert arrays.shapes is not None
    pairs = zip(arrays.shapes, arrays.hidden(), strict=True)
    return [shape for shape, one in pairs if one]


@pytest.mark.parametrize("tied", [True, False])
def test_of_a_transformer_they_are_those_of_its_layers(tied: bool) -> None:
    """Blocks as long as layers are wide, so that sizes alone do not tell them."""
    config = Transformer(kind="transformer", layers=2, heads=2, width=8, tied=tied)
    network = TransformerNetwork(config, 8, 8)
    of_layer = [(8, 8)] * 4 + [(32, 8), (8, 32)]
    assert hidden(network) == of_layer * 2
    flags = arrays_of(network).hidden()
    assert flags[:2] == (False, False)  # embeddings of tokens and of places
    assert flags[-1] is False


def test_of_layers_they_are_those_between_the_first_and_the_last() -> None:
    assert hidden(DEEP) == [(6, 6), (7, 6)]
    recurrent = LstmNetwork(Lstm(kind="lstm", frames=4, cells=3, layers=2), 5, 8)
    assert hidden(recurrent) == [(256, 6)]  # stacks of both ways are no matrix


def test_a_model_of_ones_own_must_say_all() -> None:
    form = OutputForm("softmax", 3)
    named = UserFunction(f"{__name__}:Own", "model")
    network = python_network(named, form, (Field("", (2,), whole=True),))
    with pytest.raises(ScenarioError, match="write matrices: all"):
        arrays_of(network).hidden()


class Own(eqx.Module):
    layer: eqx.nn.Linear

    def __init__(self, *, key: jax.Array) -> None:
        self.layer = eqx.nn.Linear(2, 3, key=key)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.layer(x)


def test_hidden_matrices_are_turned_and_the_rest_is_adams() -> None:
    """The first step of Adam is the sign of the gradient; Muon's is orthogonal."""
    plain = {"kind": "muon", "learning_rate": 0.1, "nesterov": False}
    made = rule_of(Optax.model_validate(plain))
    assert made is not None
    arrays = arrays_of(DEEP)
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
        arrays_of(shallow).hidden()
    assert not any(arrays_of(shallow, whole=False).hidden())
    assert ModelArrays(((3,),)).hidden() == (False,)
    made = rule_of(Optax.model_validate({"kind": "muon", "learning_rate": 0.1}))
    assert made is not None
    with pytest.raises(ScenarioError, match="without hidden matrices"):
        made.init(jnp.zeros((3, 5)), arrays_of(object()))  # a linear model


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
