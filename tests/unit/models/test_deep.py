"""Networks of parties and server: the seven-layer CNN, LSTMs, views, narrow parties."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from stalesim.simulator.catalogue.models.cnn.part import Cnn, DeepCnn
from stalesim.simulator.catalogue.models.lstm.part import Lstm
from stalesim.simulator.catalogue.models.mlp.part import Mlp
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.data.outputs import OutputForm
from stalesim.simulator.problem.models.dense.part import Dense
from stalesim.simulator.problem.models.flat import split
from stalesim.simulator.problem.models.linear.part import Linear
from stalesim.simulator.problem.models.party import PartyNetwork, party_network
from stalesim.simulator.problem.models.server.network import ServerNetwork
from stalesim.simulator.problem.models.server.part import ServerModel
from tests.unit.models.test_networks import both_ways, one_way

MODELS: dict[str, tuple[Any, int]] = {
    "linear": (Linear(), 6),
    "mlp": (Mlp(hidden=5), 6),
    "dense": (Dense(hidden=(5, 4)), 6),
    "cnn": (Cnn(channels=(2, 3), kernel=3, image=(10, 11, 1)), 110),
    "deep_cnn": (DeepCnn(channels=(2, 3, 4), image=(5, 4, 2)), 40),
    "lstm": (Lstm(layers=2, cells=3, frames=4), 12),
}
"""Every model, and columns of a view that it takes."""


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def some(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def party_of(name: str, views: int = 1, width: int = 3) -> Any:
    model, columns = MODELS[name]
    return party_network(
        model, [views * columns] * 2, width=width, views=views, last=True
    )


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_every_model_serves_a_party_with_views(name: str) -> None:
    model, columns = MODELS[name]
    one, three = party_of(name), party_of(name, views=3)
    assert (one.num_outputs, three.num_outputs) == (3, 9)
    weights = jnp.asarray(three.init(jax.random.key(0), 3 * columns), float)
    own = model.num_weights(columns, 3) - 3 * (name == "linear")
    assert weights.size == (own if name != "lstm" else model.party_weights(columns, 3))
    weights = weights + 0.1 * some(*weights.shape)
    x = some(4, 3 * columns)
    h = three.apply(weights, x)
    for view in range(3):
        alone = one.apply(weights, x[:, view * columns : (view + 1) * columns])
        np.testing.assert_allclose(h[3 * view : 3 * view + 3], alone, 1e-12, 1e-15)
    if model.activation_of_party == "relu" and "vertical" not in model.families:
        assert (h >= 0).all()


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_what_is_sent_to_a_network_does_not_start_at_zero(name: str) -> None:
    """Zeros, good for logits that are added up, would never leave a ReLU."""
    columns, party = MODELS[name][1], party_of(name)
    x = jnp.abs(some(4, columns))
    for key in (0, 1):
        h = party.apply(jnp.asarray(party.init(jax.random.key(key), columns), float), x)
        assert (h != 0).all()
        assert jnp.abs(h).max() < 5
    narrow = party_network(Mlp(hidden=5), [6, 2], width=3, views=1, last=True)
    first = split(narrow.init(jax.random.key(0), 2), narrow.network.shapes)[0]
    assert first[:, :2].all()
    assert not first[:, 2:].any()


@pytest.mark.parametrize("name", MODELS)
def test_noise_of_zero_changes_nothing_and_all_layers_have_some(name: str) -> None:
    model, columns = MODELS[name]
    party = party_of(name, views=2)
    weights = jnp.asarray(party.init(jax.random.key(0), 2 * columns), float)
    weights = weights + 0.3 * some(*weights.shape)
    x = some(4, 2 * columns)
    shapes = party.hidden_shapes
    assert len(shapes) == model.num_layers - 1
    zeros = tuple(jnp.zeros((*shape, 4)) for shape in shapes)
    last = jnp.zeros((party.num_outputs, 4))
    plain = party.apply(weights, x)
    np.testing.assert_allclose(party.apply(weights, x, zeros, last), plain, 1e-12)
    for layer, shape in enumerate(shapes):
        # Of the second view of the third sample alone.
        noise = jnp.zeros((*shape, 4)).at[1, ..., 2].set(some(*shape[1:]))
        moved = party.apply(weights, x, (*zeros[:layer], noise, *zeros[layer + 1 :]))
        changed = np.asarray(moved != plain)
        assert changed[3:, 2].any(), layer
        assert not changed[:3].any()
        assert not changed[:, [0, 1, 3]].any()


def test_the_deep_cnn_is_xlas() -> None:
    """With its own padding and pools, of two pairs of convolutions."""
    config = DeepCnn(channels=(2, 3, 4, 2), image=(8, 6, 2))
    network = config.make(5, 96, "horizontal")
    parts = [
        jnp.asarray(p) for p in split(some(config.num_weights(96, 5)), network.shapes)
    ]
    x = some(3, 96)
    images = x.reshape(3, 2, 8, 6)
    for layer in range(4):
        images = lax.conv(images, parts[2 * layer], (1, 1), "SAME")
        images = jax.nn.relu(images + parts[2 * layer + 1][None, :, None, None])
        if layer % 2:
            images = lax.reduce_window(
                images, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
            )
    expected = parts[-2] @ images.reshape(3, -1).T + parts[-1][:, None]
    weights = jnp.concatenate([p.reshape(-1) for p in parts])
    np.testing.assert_allclose(network.apply(weights, x), expected, 1e-10)
    np.testing.assert_allclose(
        network.apply(weights, jnp.tile(x, (120, 1)))[:, -3:], expected, 1e-10
    )


def test_the_seven_layers_of_the_paper() -> None:
    config = DeepCnn()
    assert config.num_layers == 7
    shapes = config.make(512, 32 * 32, "vertical").shapes
    assert shapes[-2] == (512, 128 * 4 * 4)


def test_a_partys_lstm_is_loops_over_frames() -> None:
    config = Lstm(layers=1, cells=3, frames=4)
    network = config.make(2, 4 * 5, "vertical")
    flat = 0.5 * some(config.party_weights(20, 2))
    *first, v_i, v_h, d, e = map(np.asarray, split(flat, network.shapes))
    x = np.asarray(some(3, 20))
    rows = x.reshape(3, 4, 5)
    expected = [one_way(v_i, v_h, d + e, both_ways(first, list(r)))[-1] for r in rows]
    found = network.apply(flat, jnp.asarray(x))
    np.testing.assert_allclose(found, np.array(expected).T, 1e-12)


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "sizes", "pieces"),
    [(Dense(hidden=(4,)), (6, 4), 1), (Lstm(layers=1, cells=3, frames=2), (6, 4), 2)],
)
def test_a_narrow_party_is_a_network_of_its_own_width(
    model: Any, sizes: tuple[int, int], pieces: int
) -> None:
    from stalesim.simulator.problem.vertical import stack

    party = party_network(model, sizes, width=3, views=1, last=True)
    assert isinstance(party, PartyNetwork)
    own = model.make(3, 4, "vertical")
    key = jax.random.key(3)
    x = np.asarray(some(5, 10))
    stacked = stack(x, [np.arange(6), np.arange(6, 10)], pieces)
    weights = jnp.asarray(party.init(key, 4), float)
    alone = own.apply(jnp.asarray(own.init(key), float), jnp.asarray(x[:, 6:]))
    if model.activation_of_party == "relu":
        alone = jax.nn.relu(alone)
    np.testing.assert_allclose(
        party.apply(weights, jnp.asarray(stacked[1])), alone, 1e-12
    )
    slope = jax.grad(lambda w: party.apply(w, jnp.asarray(stacked[1])).sum())(weights)
    assert weights.size > model.party_weights(4, 3)
    assert (np.asarray(slope)[np.asarray(weights) == 0] == 0).sum() >= (
        weights.size - model.party_weights(4, 3)
    )


def test_the_server_combines_vectors_as_it_says() -> None:
    h = some(3, 2 * 4, 5)
    vectors = np.asarray(h).reshape(6, 4, 5)
    for combine in ("sum", "weighted_sum", "concat"):
        config = ServerModel(width=4, views=2, combine=combine, hidden=(7,))
        network = ServerNetwork(config, 3, 2)
        weights = some(config.num_weights(3, OutputForm("softmax", 2)))
        arrays = [*map(np.asarray, split(weights, network.shapes))]
        inputs = vectors.reshape(24, 5)
        if combine == "sum":
            inputs = vectors.sum(axis=0)
        elif combine == "weighted_sum":
            inputs = np.tensordot(arrays.pop(0), vectors, 1)
        hidden = np.maximum(arrays[0] @ inputs + arrays[1][:, None], 0)
        expected = arrays[2] @ hidden + arrays[3][:, None]
        np.testing.assert_allclose(network.apply(weights, h), expected, 1e-12)
    start = network.init(jax.random.key(0))
    assert (np.asarray(split(start, network.shapes)[1]) == 0).all()
    weighted = ServerNetwork(
        config.model_copy(update={"combine": "weighted_sum"}), 3, 2
    )
    np.testing.assert_allclose(weighted.init(jax.random.key(0))[:6], 1 / 6, 1e-7)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"server\.views must divide the columns"):
        party_network(Dense(), [6, 4], width=3, views=3, last=True)
    with pytest.raises(ScenarioError, match="give all parties as many columns"):
        party_network(
            Cnn(kernel=1, channels=(1, 1)), [64, 49], width=3, views=1, last=True
        )
    with pytest.raises(ScenarioError, match="projection must be left out for a party"):
        Lstm(projection=3, frames=2).party_weights(4, 3)
    with pytest.raises(ScenarioError, match="at least 4 x 4 pixels for 2 pools"):
        DeepCnn(channels=(1, 1, 1, 1), image=(3, 4, 1)).num_weights(12, 2)
    with pytest.raises(ValueError, match="kernel must be odd"):
        DeepCnn(kernel=2)
