from dataclasses import astuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.algorithms.client_work import Work, clipped, noised
from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.data.images import image_shape
from stalesim.simulator.models import flat_network
from stalesim.simulator.models.cnn.network import CnnNetwork
from stalesim.simulator.models.cnn.part import Cnn, sizes

SMALL = CnnNetwork(13, 12, 3, (3, 4), 3, 5)
NETWORKS = [
    SMALL,
    CnnNetwork(16, 16),
    CnnNetwork(28, 28),
]


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def drawn(network, num_rows, seed=0):
    rng = np.random.default_rng(seed)
    num_features = network.height * network.width * network.depth
    return (
        jnp.asarray(rng.normal(size=network.num_weights) * 0.2),
        jnp.asarray(rng.normal(size=(num_rows, num_features))),
        jnp.asarray(rng.normal(size=(network.num_outputs, num_rows))),
    )


def slow_layer(network, image, kernels, bias):
    """Convolution, ReLU, pool of one image `[C, H, W]`, in the order of their names."""
    size = kernels.shape[-1]
    rows, columns = image.shape[1] - size + 1, image.shape[2] - size + 1
    hidden = np.zeros((len(bias), rows, columns))
    for c, i, j in np.ndindex(*hidden.shape):
        total = bias[c]
        for d, a, b in np.ndindex(*kernels.shape[1:]):
            total += kernels[c, d, a, b] * image[d, i + a, j + b]
        hidden[c, i, j] = max(total, 0.0)
    out = np.zeros((len(bias), rows // 2, columns // 2))
    for c, i, j in np.ndindex(*out.shape):
        four = [hidden[c, 2 * i + a, 2 * j + b] for a in (0, 1) for b in (0, 1)]
        out[c, i, j] = max(four)
    return out


def slow_logits(network, weights, x):
    flat, at = np.asarray(weights), 0

    def take(*shape):
        nonlocal at
        at += int(np.prod(shape))
        return flat[at - int(np.prod(shape)) : at].reshape(shape)

    depth, (first, second), size = network.depth, network.channels, network.kernel
    layers = [
        (take(first, depth, size, size), take(first)),
        (take(second, first, size, size), take(second)),
    ]
    logits = []
    for row in np.asarray(x):
        image = row.reshape(depth, network.height, network.width)
        for kernels, bias in layers:
            image = slow_layer(network, image, kernels, bias)
        logits.append(image.reshape(-1))
    inputs = np.stack(logits, axis=1)
    dense = take(network.num_outputs, inputs.shape[0])
    out = dense @ inputs + take(network.num_outputs)[:, None]
    assert at == flat.size
    return out


@pytest.mark.parametrize("network", NETWORKS[:2])
def test_logits_are_those_of_explicit_loops(network):
    weights, x, _ = drawn(network, 2)
    logits = jax.jit(network.apply)(weights, x)
    np.testing.assert_allclose(logits, slow_logits(network, weights, x), atol=1e-12)


@pytest.mark.parametrize("network", NETWORKS[:2])
def test_the_gradient_is_that_of_finite_differences(network):
    weights, x, slope = drawn(network, 3)

    @jax.jit
    def value(weights, x):
        return jnp.sum(slope * jnp.tanh(network.apply(weights, x)))

    rng = np.random.default_rng(1)
    gradients = jax.jit(jax.grad(value, argnums=(0, 1)))(weights, x)
    # A direction a millionth long crosses no kink here; central differences then err
    # by about 1e-16 / 1e-6 of a value of order ten.
    for direction in range(4):
        to_weights = jnp.asarray(rng.normal(size=weights.shape))
        to_x = jnp.asarray(rng.normal(size=x.shape)) * (direction % 2)
        h = 1e-6
        rise = value(weights + h * to_weights, x + h * to_x)
        rise -= value(weights - h * to_weights, x - h * to_x)
        slope_along = jnp.vdot(gradients[0], to_weights) + jnp.vdot(gradients[1], to_x)
        np.testing.assert_allclose(slope_along, rise / (2 * h), rtol=1e-6, atol=1e-6)


def test_curvature_can_be_estimated():
    weights, x, slope = drawn(SMALL, 2)

    @jax.jit
    def gradient(weights):
        return jax.grad(lambda w: jnp.sum(slope * jnp.tanh(SMALL.apply(w, x))))(weights)

    direction = jnp.asarray(np.random.default_rng(1).normal(size=weights.shape))
    h = 1e-6
    rise = gradient(weights + h * direction) - gradient(weights - h * direction)
    along = jax.jit(lambda d: jax.jvp(gradient, (weights,), (d,))[1])(direction)
    np.testing.assert_allclose(along, rise / (2 * h), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_plain_count_is_the_number_of_weights(network):
    shape = jax.eval_shape(network.init, jax.random.key(0)).shape
    height, width, depth, channels, kernel, outputs = astuple(network)
    config = Cnn(channels=channels, kernel=kernel, image=(height, width, depth))
    count = config.num_weights(height * width * depth, outputs)
    assert shape == (count,) == network.regularised().shape
    parts = jax.eval_shape(network.parts, jax.ShapeDtypeStruct(shape, "float32"))
    assert sum(part.size for part in parts) == count
    assert network.num_noised == parts.kernels_1.size + parts.bias_1.size
    biases = parts.bias_1.size + parts.bias_2.size + parts.bias.size
    assert network.regularised().sum() == count - biases


def test_the_papers_network_has_4380_weights_of_which_260_come_first():
    network = CnnNetwork(28, 28)
    assert (network.num_weights, network.num_noised) == (4380, 260)
    assert network.shapes[4] == (10, 160)


def test_only_the_first_convolution_lies_in_the_noised_prefix():
    weights = jnp.zeros(SMALL.num_weights).at[: SMALL.num_noised].set(1)
    parts = SMALL.parts(weights)
    assert [float(part.mean()) for part in parts] == [1, 1, 0, 0, 0, 0]


def test_only_what_is_noised_is_clipped():
    """M-14: the norm is of the beginning, and the rest is sent as it is."""
    message = jnp.array([3.0, 4.0, 100.0])
    work = Work(jnp.zeros(()), message, message, {})
    sent = clipped(work, jnp.array(1.0), 2).message
    np.testing.assert_allclose(sent, [0.6, 0.8, 100], rtol=1e-6)
    after = noised(work, "gaussian", jax.random.key(0), jnp.array(1.0), 2).message
    assert (after[:2] != message[:2]).all()
    assert after[2] == 100


def test_weights_start_within_their_limits():
    network = CnnNetwork(28, 28)
    weights = network.init(jax.random.key(0))
    parts = network.parts(weights)
    for part, inputs in zip(parts, (25, 25, 250, 250, 160, 160), strict=True):
        assert 0.5 < float(jnp.abs(part).max()) * np.sqrt(inputs) <= 1
    with jax.enable_x64(False):
        single = network.init(jax.random.key(0))
    assert single.tolist() == weights.tolist()


def test_rows_that_do_not_count_have_no_gradient():
    weights, x, slope = drawn(SMALL, 4)

    @jax.jit
    def gradient(x):
        def value(w):
            return jnp.sum((slope * SMALL.apply(w, x))[:, :3])

        return jax.grad(value)(weights)

    kept = gradient(x)
    np.testing.assert_array_equal(kept, gradient(x.at[3].set(0)))
    assert np.abs(kept - gradient(x.at[2].set(0))).max() > 1e-3


def test_many_weights_at_once_are_those_one_by_one():
    _, x, slope = drawn(SMALL, 4)
    several = jnp.stack([drawn(SMALL, 4, seed)[0] for seed in range(3)])

    def value(weights):
        return jnp.sum(slope * SMALL.apply(weights, x))

    one_by_one = jax.jit(jax.value_and_grad(value))
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(value)))(several)
    for weights, one, gradient in zip(several, values, gradients, strict=True):
        expected, slopes = one_by_one(weights)
        np.testing.assert_allclose(one, expected, atol=1e-12)
        np.testing.assert_allclose(gradient, slopes, atol=1e-12)


@pytest.mark.parametrize("num_rows", [4, 5, 8])
def test_rows_in_blocks_are_those_at_once(monkeypatch, num_rows):
    weights, x, slope = drawn(SMALL, num_rows)

    def both():
        def value(w):
            logits = SMALL.apply(w, x)
            return jnp.sum(slope * logits), logits

        return jax.jit(jax.grad(value, has_aux=True))(weights)

    whole = both()
    monkeypatch.setattr(flat_network, "BLOCK", 4)
    for in_blocks, at_once in zip(both(), whole, strict=True):
        np.testing.assert_allclose(in_blocks, at_once, atol=1e-12)


def test_the_shape_of_images_is_inferred_or_given():
    assert image_shape(784) == (28, 28, 1)
    assert image_shape(256) == (16, 16, 1)
    assert image_shape(3072) == (32, 32, 3)
    assert image_shape(600, (20, 30)) == (20, 30, 1)
    assert image_shape(1200, (20, 30, 2)) == (20, 30, 2)


@pytest.mark.parametrize(
    ("num_features", "image", "message"),
    [
        (30, None, "got 30 columns; set problem.model.image"),
        (0, None, "got 0 columns"),
        (784, (28, 27), r"784, got \(28, 27\) with 756"),
        (784, (784,), r"must be \(height, width\)"),
        (784, (28, -28, -1), "each >= 1"),
    ],
)
def test_images_of_no_shape_are_refused(num_features, image, message):
    with pytest.raises(ScenarioError, match=message):
        image_shape(num_features, image)


def test_images_may_be_too_small():
    assert sizes(16, 17, 5) == ((6, 6), (1, 1))
    with pytest.raises(ScenarioError, match=r"at least 16 x 16 .* got 15 x 28"):
        Cnn(image=(15, 28, 1)).num_weights(15 * 28, 10)
