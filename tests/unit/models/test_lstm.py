"""The bidirectional LSTM against explicit loops, and what it weighs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.models import flat_network
from stalesim.simulator.models.lstm.network import LstmNetwork, lstm
from stalesim.simulator.models.lstm.part import Lstm

FRAMES, WIDTH, STATES = 4, 3, 5
SIZES = [(1, 2, 3), (3, 2, 4)]
"""Layers, cells and projection."""


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def network(layers: int = 2, cells: int = 2, projection: int = 3) -> LstmNetwork:
    config = Lstm(layers=layers, cells=cells, projection=projection, frames=FRAMES)
    return lstm(config, STATES, FRAMES * WIDTH, "horizontal")


def drawn(model: LstmNetwork, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=model.num_weights)
    return weights, rng.normal(size=(num_rows, FRAMES * WIDTH))


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def one_way(w_i: np.ndarray, w_h: np.ndarray, b: np.ndarray, x: list) -> list:
    """One direction of a layer on the frames of one row, by PyTorch's equations."""
    cells = w_h.shape[1]
    h, c, outputs = np.zeros(cells), np.zeros(cells), []
    for frame in x:
        i, f, g, o = (w_i @ frame + w_h @ h + b).reshape(4, cells)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return outputs


def slow_logits(model: LstmNetwork, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    at, cells = 0, model.config.cells

    def take(*shape: int) -> np.ndarray:
        nonlocal at
        at += int(np.prod(shape))
        return weights[at - int(np.prod(shape)) : at].reshape(shape)

    layers, width = [], WIDTH
    for _ in range(model.config.layers):
        w_i, w_h = take(2, 4 * cells, width), take(2, 4 * cells, cells)
        layers.append((w_i, w_h, take(2, 4 * cells) + take(2, 4 * cells)))
        width = 2 * cells
    matrix, shift = take(model.config.projection, width), take(model.config.projection)
    dense, bias = take(STATES, model.config.projection), take(STATES)
    assert at == weights.size
    columns = []
    for row in x:
        hidden = list(row.reshape(FRAMES, WIDTH))
        for w_i, w_h, b in layers:
            ahead = one_way(w_i[0], w_h[0], b[0], hidden)
            back = one_way(w_i[1], w_h[1], b[1], hidden[::-1])[::-1]
            hidden = [np.concatenate(two) for two in zip(ahead, back, strict=True)]
        columns += [dense @ (matrix @ frame + shift) + bias for frame in hidden]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("sizes", SIZES)
def test_logits_are_those_of_explicit_loops(sizes: tuple[int, int, int]) -> None:
    model = network(*sizes)
    weights, x = drawn(model, 3)
    logits = jax.jit(model.apply)(jnp.asarray(weights), jnp.asarray(x))
    np.testing.assert_allclose(logits, slow_logits(model, weights, x), atol=1e-12)


def test_gradient_is_that_of_finite_differences() -> None:
    model = network()
    weights, x = drawn(model, 2)
    slopes = np.random.default_rng(1).normal(size=(STATES, 2 * FRAMES))

    def total(weights: jax.Array) -> jax.Array:
        return jnp.sum(slopes * model.apply(weights, jnp.asarray(x)))

    gradient = jax.jit(jax.grad(total))(jnp.asarray(weights))
    ends = np.cumsum([np.prod(shape) for shape in model.shapes])
    for place in (ends - 1).tolist():  # one coordinate of every array
        step = np.zeros(weights.size)
        step[place] = 1e-6
        ahead, behind = (
            np.sum(slopes * slow_logits(model, weights + s, x)) for s in (step, -step)
        )
        expected = (ahead - behind) / 2e-6
        np.testing.assert_allclose(gradient[place], expected, rtol=1e-6, atol=1e-7)


def test_many_models_at_once_and_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(1)
    _, x = drawn(model, 7)
    weights = np.random.default_rng(2).normal(size=(3, model.num_weights))
    each = [slow_logits(model, w, x) for w in weights]
    monkeypatch.setattr(flat_network, "BLOCK", 3)
    every = jax.jit(jax.vmap(model.train, (0, None)))
    logits, statistics = every(jnp.asarray(weights), jnp.asarray(x))
    np.testing.assert_allclose(logits, np.stack(each), atol=1e-12)
    assert (statistics.shape, model.num_statistics) == ((3, 0), 0)


def test_weighs_what_table_2_says() -> None:
    count = Lstm().num_weights(21 * 260, 32_000)
    layers = 2 * 4 * 512 * (260 + 512 + 2) + 5 * 2 * 4 * 512 * (1024 + 512 + 2)
    assert count == layers + 256 * (1024 + 1) + 32_000 * (256 + 1) == 43_154_944
    assert round(4 * count / 2**20, 2) == 164.62


def test_start_and_what_is_regularised() -> None:
    model = network(2, 4, 5)
    start = np.asarray(model.init(jax.random.key(0)))
    assert start.shape == (model.num_weights,) == model.regularised().shape
    ends = np.cumsum([np.prod(shape) for shape in model.shapes])
    limits = [4**-0.5] * 8 + [8**-0.5] * 2 + [5**-0.5] * 2
    for part, limit in zip(np.split(start, ends[:-1]), limits, strict=True):
        assert np.abs(part).max() <= limit
    assert np.abs(start[: ends[0]]).max() > 0.9 * limits[0]
    kept = [part.mean() for part in np.split(model.regularised(), ends[:-1])]
    assert kept == [1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0]
    assert model.num_noised == 2 * 4 * 4 * (WIDTH + 4 + 2)


def test_columns_that_are_no_frames() -> None:
    with pytest.raises(ScenarioError, match=r"must divide the 64 columns .* got 21"):
        lstm(Lstm(), 10, 64, "horizontal")
