"""Fully connected layers against plain NumPy, and what they weigh."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.data.base import Dataset
from stalesim.simulator.learning.horizontal import build
from stalesim.simulator.models import flat_network
from stalesim.simulator.models.dense.network import DenseNetwork, dense
from stalesim.simulator.models.dense.part import Dense

SHAPES = [((3,), "relu"), ((5, 4), "relu"), ((5, 4), "tanh"), ((2, 6, 3), "tanh")]
PLAIN = {"relu": lambda z: np.maximum(z, 0), "tanh": np.tanh}
INPUTS, CLASSES = 7, 4


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def network(hidden: tuple[int, ...] = (5, 4), activation: str = "tanh") -> DenseNetwork:
    config = Dense.model_validate({"hidden": hidden, "activation": activation})
    return dense(config, CLASSES, INPUTS, "horizontal")


def size(model: DenseNetwork) -> int:
    return sum(int(np.prod(shape)) for shape in model.shapes)


def drawn(
    model: DenseNetwork, num_rows: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=size(model)), rng.normal(size=(num_rows, INPUTS))


def plain_logits(model: DenseNetwork, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    at, hidden = 0, x
    for layer, (inputs, units) in enumerate(
        zip(model.sizes[:-1], model.sizes[1:], strict=True)
    ):
        if layer:
            hidden = PLAIN[model.activation](hidden)
        matrix = weights[at : at + inputs * units].reshape(units, inputs)
        at += inputs * units
        hidden = hidden @ matrix.T + weights[at : at + units]
        at += units
    assert at == weights.size
    return hidden.T


@pytest.mark.parametrize(("hidden", "activation"), SHAPES)
def test_logits_are_those_of_plain_numpy(
    hidden: tuple[int, ...], activation: str
) -> None:
    model = network(hidden, activation)
    weights, x = drawn(model, 6)
    logits = jax.jit(model.apply)(jnp.asarray(weights), jnp.asarray(x))
    assert logits.shape == (CLASSES, 6)
    np.testing.assert_allclose(logits, plain_logits(model, weights, x), atol=1e-12)


@pytest.mark.parametrize("activation", PLAIN)
def test_the_gradient_is_that_of_finite_differences(activation: str) -> None:
    model = network(activation=activation)
    weights, x = drawn(model, 6)
    slopes = np.random.default_rng(1).normal(size=(CLASSES, 6))

    def total(weights: jax.Array) -> jax.Array:
        return jnp.sum(slopes * model.apply(weights, jnp.asarray(x)))

    gradient = jax.jit(jax.grad(total))(jnp.asarray(weights))
    # No hidden unit is within 1e-6 of a kink here; central differences then err by
    # about 1e-16 / 1e-6 of a sum of order a hundred.
    for place in range(weights.size):
        step = np.zeros(weights.size)
        step[place] = 1e-6
        ahead, behind = (
            np.sum(slopes * plain_logits(model, weights + s, x)) for s in (step, -step)
        )
        expected = (ahead - behind) / 2e-6
        np.testing.assert_allclose(gradient[place], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("hidden", "activation"), SHAPES)
def test_counts_are_those_of_the_shapes(
    hidden: tuple[int, ...], activation: str
) -> None:
    config = Dense.model_validate({"hidden": hidden, "activation": activation})
    model = network(hidden, activation)
    assert model.sizes == (INPUTS, *hidden, CLASSES)
    assert config.num_weights(INPUTS, CLASSES) == size(model)
    start = jax.eval_shape(model.init, jax.random.key(0))
    assert start.shape == (size(model),)
    assert model.num_noised == hidden[0] * (INPUTS + 1)
    assert model.num_statistics == 0


def test_the_network_of_the_calibration_has_109386_weights() -> None:
    # Section 5.7 of the specification: 784-128-64-10 with ReLU.
    assert Dense().num_weights(784, 10) == 785 * 128 + 129 * 64 + 65 * 10 == 109_386
    assert Dense().activation == "relu"


def test_only_matrices_are_regularised() -> None:
    model = network()
    mask, at = model.regularised(), 0
    for shape in model.shapes:
        count = int(np.prod(shape))
        assert (mask[at : at + count] == (len(shape) == 2)).all()
        at += count
    assert mask.shape == (at,)
    weights, x = drawn(model, 6)
    y = np.arange(6) % CLASSES
    data = Dataset("test", x, y, x, y, CLASSES, ())
    problem = build(
        data,
        model,
        2,
        loss="softmax",
        reduction="mean",
        l2=0.5,
        minimum=np.nan,
        dtype="float64",
    )
    expected = 0.5 * np.where(mask, weights, 0)

    @jax.jit
    def gradients(weights: jax.Array) -> tuple[jax.Array, ...]:
        everyone = problem.x, problem.y, jnp.ones(6, bool)
        whole = jax.grad(problem.objective)(weights)
        batch = jax.grad(problem.batch_loss)(weights, *everyone)
        return whole, batch, problem.penalised(weights)

    whole, batch, penalty = gradients(jnp.asarray(weights))
    np.testing.assert_allclose(penalty, expected, 1e-15)
    np.testing.assert_allclose(whole, batch + expected, atol=1e-14)


def test_weights_start_within_their_limits() -> None:
    config = Dense(hidden=(128, 64))
    model = dense(config, 10, 64, "horizontal")
    weights, at = model.init(jax.random.key(0)), 0
    for shape, inputs in zip(model.shapes, (64, 64, 128, 128, 64, 64), strict=True):
        count = int(np.prod(shape))
        part = np.abs(weights[at : at + count]) * np.sqrt(inputs)
        assert 0.5 < part.max() <= 1 + 1e-6
        if count > 1000:  # the deviation of such a mean is below a hundredth
            assert part.mean() == pytest.approx(0.5, abs=0.05)
        at += count
    with jax.enable_x64(False):
        single = model.init(jax.random.key(0))
    assert single.tolist() == weights.tolist()
    assert (model.init(jax.random.key(1)) != weights).mean() > 0.99


@pytest.mark.parametrize("num_rows", [3, 7])
def test_many_models_at_once_and_many_rows(
    num_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = network()
    _, x = drawn(model, num_rows)
    several = np.stack([drawn(model, 1, seed)[0] for seed in range(3)])
    each = [plain_logits(model, weights, x) for weights in several]
    monkeypatch.setattr(flat_network, "BLOCK", 3)
    every = jax.jit(jax.vmap(model.train, (0, None)))
    logits, statistics = every(jnp.asarray(several), jnp.asarray(x))
    np.testing.assert_allclose(logits, np.stack(each), atol=1e-12)
    assert statistics.shape == (3, 0)
    np.testing.assert_array_equal(model.features(x), x)
