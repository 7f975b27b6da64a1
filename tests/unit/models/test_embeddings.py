"""Networks of vertical parties: sizes, padding, and what they compute."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.catalogue.models.mlp.part import Mlp
from stalesim.simulator.problem.models.flat import BLOCK, drawn, in_blocks, split

MLP = Mlp(hidden=5)
RELU = Mlp(hidden=4, activation="relu")


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def some(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def applied(network: Any, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(network.apply)(weights, x))


def parts_of(weights: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    return [*map(np.asarray, split(jnp.asarray(weights), shapes))]


def begun(network: Any, seed: int, held: int) -> Any:
    init = jax.jit(network.init, static_argnums=1)
    return np.asarray(init(jax.random.key(seed), held))


@pytest.mark.parametrize(("config", "columns"), [(MLP, 6), (RELU, 1)])
@pytest.mark.parametrize("outputs", [1, 10])
def test_the_plain_count_is_the_number_of_weights(
    config: Any, columns: int, outputs: int
) -> None:
    network = config.make(outputs, columns, "vertical")
    weights = jax.eval_shape(lambda: network.init(jax.random.key(0), columns))
    assert weights.shape == (config.num_weights(columns, outputs),)
    rows = jax.ShapeDtypeStruct((9, columns), "float64")
    assert jax.eval_shape(network.apply, weights, rows).shape == (outputs, 9)


def test_in_transfer_learning_outputs_are_the_hidden_units() -> None:
    whole = MLP.make(1, 6, "vertical")
    alone = MLP.make(1, 6, "transfer")
    weights = some(MLP.num_weights(6, 1))
    hidden = applied(alone, weights[:-5], some(9, 6))
    assert (alone.num_outputs, hidden.shape) == (5, (5, 9))
    found = applied(whole, weights, some(9, 6))
    np.testing.assert_allclose(found, weights[-5:][None] @ hidden, rtol=1e-12)


@pytest.mark.parametrize("config", [MLP, RELU])
def test_an_mlp_is_two_matrix_products(config: Mlp) -> None:
    network, H = config.make(3, 6, "vertical"), config.hidden
    weights, x = some(config.num_weights(6, 3)), some(9, 6, seed=1)
    first, bias, last = np.split(weights, [6 * H, 7 * H])
    units = first.reshape(H, 6) @ x.T + bias[:, None]
    units = np.tanh(units) if config.activation == "tanh" else np.maximum(units, 0)
    expected = last.reshape(3, H) @ units
    np.testing.assert_allclose(applied(network, weights, x), expected, rtol=1e-12)


def test_padded_columns_start_at_zero_and_stay_there() -> None:
    network = RELU.make(2, 6, "vertical")
    start, x = begun(network, 3, 4).astype(np.float64), some(9, 6)
    # Outputs start at zero, and so would all other gradients be.
    start[-8:], x[:, 4:] = some(8), 0
    gradient = jax.grad(lambda w: jnp.sum(jnp.cos(network.apply(w, jnp.asarray(x)))))
    slope: Any = np.asarray(jax.jit(gradient)(start))
    for weights in (start, start - 0.1 * slope):
        first = parts_of(weights, network.shapes)[0]
        assert (first[:, 4:] == 0).all()
        assert (first[:, :4] != 0).all()
    assert np.abs(parts_of(slope, network.shapes)[0]).max() > 1e-3


@pytest.mark.parametrize("held", [4, 100])
def test_weights_start_within_the_limits_of_the_columns_held(held: int) -> None:
    network = Mlp(hidden=64).make(2, 100, "vertical")
    first, bias, last = parts_of(begun(network, 0, held), network.shapes)
    for part in (first, bias):
        assert 0.9 < np.abs(part).max() * np.sqrt(held) <= 1
    assert (last == 0).all()


@pytest.mark.parametrize("num_rows", [BLOCK, 2 * BLOCK, 2 * BLOCK + 3])
def test_rows_block_by_block_are_rows_one_by_one(num_rows: int) -> None:
    x, w = some(num_rows, 3), some(2, 3, seed=1)
    seen = []

    def apply(block: jax.Array) -> jax.Array:
        seen.append(block.shape[0])
        return jnp.tanh(w @ block.T)

    found = jax.jit(lambda x: in_blocks(apply, x))(x)
    np.testing.assert_allclose(found, np.tanh(w @ x.T), rtol=1e-12)
    assert max(seen) <= BLOCK


def test_a_flat_vector_comes_apart_in_order() -> None:
    one, two, three = parts_of(np.arange(11.0), [(2, 3), (), (4, 1)])
    assert one.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert two.tolist() == 6
    assert three.tolist() == [[7], [8], [9], [10]]


def test_draws_are_uniform_between_their_limits() -> None:
    wide = np.array([0.0, 2.0])
    flat: Any = np.asarray(drawn(jax.random.key(1), [(500, 2), (1000,)], [wide, 0.5]))
    first, second = parts_of(flat, [(500, 2), (1000,)])
    assert flat.dtype == np.float32
    assert (first[:, 0] == 0).all()
    for part, limit in ((first[:, 1], 2), (second, 0.5)):
        assert np.abs(part).max() <= limit
        # Standard deviation limit / sqrt(3) each; 5 standard errors of the mean.
        bound = 5 * limit / np.sqrt(3 * part.size)
        assert abs(part.mean()) < bound
        # The variance's is limit^2 sqrt(4 / 45 / n).
        error = abs(part.var() - limit**2 / 3)
        assert error < 5 * limit**2 * np.sqrt(4 / 45 / part.size)
