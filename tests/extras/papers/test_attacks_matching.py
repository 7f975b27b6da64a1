"""Inversion of the convolutional network's gradient by search."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.catalogue.data.mnist import parse
from stalesim.simulator.catalogue.models.cnn.network import CnnNetwork
from stalesim.simulator.catalogue.models.cnn.part import Cnn
from stalesim.simulator.extras.papers.attacks import matching, quality, relaxation

MODEL = CnnNetwork(Cnn(), (28, 28, 1))
SMALL = CnnNetwork(Cnn(channels=(3, 4), kernel=3), (13, 12, 3), 5)
ENOUGH_DB = 20.0


@functools.cache
def _images() -> tuple[np.ndarray, np.ndarray]:
    """MNIST's 5,000 images and digits in a seeded order."""
    arrays = parse()
    order = np.random.default_rng(0).permutation(len(arrays["x"]))
    return np.float32(arrays["x"][order] / 255), np.int32(arrays["y"][order])


def _loss(weights: Any, x: Any, y: Any) -> jax.Array:
    logits = MODEL.apply(weights, x)
    own = jnp.take_along_axis(logits, y[None, :], axis=0)
    return (jax.nn.logsumexp(logits, axis=0) - own[0]).mean()


_gradient = jax.jit(jax.grad(_loss))


@functools.cache
def _weights(steps: int) -> np.ndarray:
    """The network's weights after some steps on batches of 12 at rate 0.1."""
    x, y = (jnp.asarray(array[:4000]) for array in _images())

    def step(number: Any, weights: Any) -> Any:
        rows = (12 * number + jnp.arange(12)) % len(x)
        return weights - 0.1 * jax.grad(_loss)(weights, x[rows], y[rows])

    start = MODEL.init(jax.random.key(0))
    if steps == 0:
        return np.asarray(start)
    return np.asarray(jax.jit(lambda w: jax.lax.fori_loop(0, steps, step, w))(start))


def _message(weights: np.ndarray, row: int) -> tuple[np.ndarray, np.ndarray, int]:
    """A row's gradient, its image and its digit."""
    x, y = _images()
    message = _gradient(jnp.asarray(weights), x[row][None], y[row][None])
    return np.array(message), x[row], int(y[row])


def test_the_smooth_network_tends_to_the_network() -> None:
    model = SMALL
    rng = np.random.default_rng(0)
    weights = jnp.asarray(0.2 * rng.normal(size=model.num_weights), jnp.float32)
    image = jnp.asarray(rng.random(13 * 12 * 3), jnp.float32)
    own = np.asarray(model.apply(weights, image[None])[:, 0])
    of = jax.jit(relaxation.smooth_logits, static_argnums=0)
    gaps = []
    for sharpness in (1e1, 1e2, 1e4):
        smooth = of(
            model, relaxation.parts_of(model, weights), image, jnp.float32(sharpness)
        )
        gaps.append(np.abs(np.asarray(smooth) - own).max())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-3 * np.abs(own).max()


def test_the_true_image_has_no_distance_and_an_edge_its_variation() -> None:
    weights = jnp.asarray(_weights(0))
    message, true, _ = _message(_weights(0), 4000)
    parts = relaxation.parts_of(MODEL, jnp.asarray(message))
    targets = jax.tree.map(lambda part: part / jnp.linalg.norm(parts.bias), parts)
    of = jax.jit(functools.partial(relaxation.distance, MODEL, weights, targets))
    assert float(of(jnp.asarray(true), jnp.ones(3))) < 1e-10  # squares of float32
    assert float(of(jnp.zeros(784), jnp.ones(3))) > 0.1
    half = np.zeros((28, 28), np.float32)
    half[:, 14:] = 1
    edge = float(relaxation.variation(MODEL, jnp.asarray(half.ravel())))
    assert edge == pytest.approx(28 / 784, rel=2e-3)  # the corner is 1e-3 high


def test_images_are_recovered_though_the_first_layer_is_noised() -> None:
    weights = _weights(0)
    message, true, digit = _message(weights, 4000)
    found, label, _ = matching.invert(
        MODEL, weights, message, courses=matching.COURSES[:1]
    )
    assert label == digit
    assert quality.psnr(true, found) > ENOUGH_DB
    assert found.min() >= 0
    assert found.max() <= 1
    # M-14: noise of any size on the first convolution alone hides nothing. Neither do
    # clipping, which scales, and the regulariser.
    noised = 0.01 * message
    rng = np.random.default_rng(3)
    noised[: MODEL.num_noised] += 100 * rng.normal(size=MODEL.num_noised)
    noised += 1e-3 * weights * MODEL.regularised()
    found, label, _ = matching.invert(
        MODEL,
        weights,
        noised,
        use_first=False,
        l2=1e-3,
        courses=matching.COURSES[:1],
    )
    assert label == digit
    assert quality.psnr(true, found) > ENOUGH_DB


def test_a_zero_message_tells_nothing() -> None:
    found, label, far = matching.invert(MODEL, _weights(0), np.zeros(MODEL.num_weights))
    assert np.isnan(found).all()
    assert label == matching.NO_LABEL
    assert np.isnan(far)


def test_arrays_and_courses_are_checked() -> None:
    weights = _weights(0)
    with pytest.raises(ValueError, match=r"message must be 4380 finite.*\(3,\)"):
        matching.invert(MODEL, weights, np.zeros(3))
    with pytest.raises(ValueError, match="weights must be 4380 finite"):
        matching.invert(MODEL, np.full_like(weights, np.nan), weights)
    with pytest.raises(ValueError, match="courses must have at least one"):
        matching.invert(MODEL, weights, weights, courses=())


@pytest.mark.long
@pytest.mark.parametrize("steps", [0, 2000])
def test_ten_images_at_initial_and_at_trained_weights(steps: int) -> None:
    weights = _weights(steps)
    ratios = []
    for row in range(4000, 4010):
        message, true, digit = _message(weights, row)
        found, label, _ = matching.invert(MODEL, weights, message)
        assert label == digit
        ratios.append(quality.psnr(true, found))
    assert np.mean(ratios) > ENOUGH_DB
