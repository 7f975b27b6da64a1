import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.extras.papers.cifar_net import layers
from stalesim.simulator.parts.errors import ScenarioError
from tests.quick import once

# Channels in and out, rows, columns, kernel, stride, groups.
CONVOLUTIONS = [
    (3, 4, 5, 6, 3, 1, 1),
    (3, 4, 7, 6, 3, 2, 1),
    (4, 2, 5, 4, 1, 1, 1),
    (4, 2, 5, 4, 1, 2, 1),
    (4, 6, 5, 6, 3, 1, 2),
    (4, 6, 6, 7, 3, 2, 2),
    (4, 4, 5, 6, 3, 1, 4),
    (4, 4, 6, 5, 3, 2, 4),
    (3, 2, 1, 1, 3, 2, 1),
]


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def images_and_kernels(case):
    inputs, outputs, rows, columns, kernel, _, groups = case
    images = drawn(inputs, rows, columns, 2)
    return images, drawn(outputs, inputs // groups, kernel, kernel, seed=1)


def slow_convolve(images, kernels, stride, groups):
    """Every product by itself."""
    outputs, own, size, _ = kernels.shape
    rows, columns = (-(-side // stride) for side in images.shape[1:3])
    out = np.zeros((outputs, rows, columns, images.shape[3]))
    for d, i, j, c, a, b in np.ndindex(outputs, rows, columns, own, size, size):
        row, column = i * stride + a - size // 2, j * stride + b - size // 2
        if 0 <= row < images.shape[1] and 0 <= column < images.shape[2]:
            source = d // (outputs // groups) * own + c
            out[d, i, j] += kernels[d, c, a, b] * images[source, row, column]
    return out


@pytest.mark.parametrize("form", ["patches", "native"])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_a_convolution_is_that_of_explicit_loops(case, form):
    images, kernels = images_and_kernels(case)
    stride, groups = case[-2:]
    out = once(
        lambda *arrays: layers.convolve(*arrays, stride, groups, form), images, kernels
    )
    expected = slow_convolve(images, kernels, stride, groups)
    np.testing.assert_allclose(out, expected, atol=1e-12)


@pytest.mark.parametrize(("dtype", "wrong"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("case", CONVOLUTIONS[1::2])
def test_both_forms_agree_in_values_and_gradients(case, dtype, wrong):
    images, kernels = (each.astype(dtype) for each in images_and_kernels(case))

    def value(images, kernels, form):
        out = layers.convolve(images, kernels, *case[-2:], form)
        return jnp.sum(jnp.tanh(out)), out

    def found(images, kernels):
        ways = jax.grad(value, argnums=(0, 1), has_aux=True)
        return [ways(images, kernels, form) for form in ("patches", "native")]

    both = map(jax.tree.leaves, once(found, images, kernels))
    for one, other in zip(*both, strict=True):
        assert one.dtype == other.dtype == dtype
        np.testing.assert_allclose(one, other, atol=wrong)


@pytest.mark.parametrize("form", ["patches", "native"])
@pytest.mark.parametrize("case", [CONVOLUTIONS[k] for k in (0, 5, 7)])
def test_many_kernels_at_once_are_those_one_by_one(case, form):
    images, kernels = images_and_kernels(case)
    several = np.stack([kernels, 2 * kernels, kernels - 1])
    apart = np.stack([images, images + 1, -images])

    def convolved(images, kernels):
        return layers.convolve(images, kernels, *case[-2:], form)

    out = once(jax.vmap(convolved), apart, several)
    for own, kernel, found in zip(apart, several, out, strict=True):
        expected = slow_convolve(own, kernel, *case[-2:])
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_group_has_mean_nought_and_variance_one_in_each_sample():
    images, scale, shift = drawn(6, 3, 4, 2), drawn(6, seed=1), drawn(6, seed=2)
    out = once(lambda *a: layers.group_norm(*a, 2), images, scale, shift)
    for sample, group in np.ndindex(2, 2):
        own = slice(3 * group, 3 * group + 3)
        part = images[own, :, :, sample]
        normal = (part - part.mean()) / np.sqrt(part.var() + 1e-5)
        expected = normal * scale[own, None, None] + shift[own, None, None]
        np.testing.assert_allclose(out[own, :, :, sample], expected, atol=1e-12)


def test_batch_norm_is_its_formula():
    images, scale, shift = drawn(3, 4, 5, 6), drawn(3, seed=1), drawn(3, seed=2)
    mean, variance = layers.moments(jnp.asarray(images))
    given = map(jnp.asarray, (images, scale, shift))
    out = layers.batch_norm(*given, mean, variance)
    for channel, part in enumerate(images):
        np.testing.assert_allclose(mean[channel], part.mean(), atol=1e-12)
        np.testing.assert_allclose(variance[channel], part.var(), atol=1e-12)
        normal = (part - part.mean()) / np.sqrt(part.var() + 1e-5)
        expected = normal * scale[channel] + shift[channel]
        np.testing.assert_allclose(out[channel], expected, atol=1e-12)
    unbiased = layers.unbiased(variance, jnp.asarray(images))
    np.testing.assert_allclose(unbiased, images.var(axis=(1, 2, 3), ddof=1))


def test_one_number_has_no_unbiased_variance():
    with pytest.raises(ScenarioError, match="at least two numbers per channel"):
        layers.unbiased(jnp.zeros(3), jnp.zeros((3, 1, 1, 1)))


@pytest.mark.parametrize(
    ("size", "stride", "padding"), [(2, 2, 0), (3, 1, 1), (3, 2, 1)]
)
@pytest.mark.parametrize("shape", [(2, 5, 6, 3), (2, 4, 7, 3)])
def test_a_pool_is_that_of_explicit_loops(shape, size, stride, padding):
    images = drawn(*shape)
    out = once(lambda x: layers.max_pool(x, size, stride, padding), images)
    rows, columns = ((side + 2 * padding - size) // stride + 1 for side in shape[1:3])
    assert out.shape == (shape[0], rows, columns, shape[3])
    for i, j in np.ndindex(rows, columns):
        top, left = i * stride - padding, j * stride - padding
        part = images[:, max(top, 0) : top + size, max(left, 0) : left + size]
        np.testing.assert_array_equal(out[:, i, j], part.max(axis=(1, 2)))


def test_equal_maxima_share_the_gradient_of_a_pool():
    def value(images):
        return layers.max_pool(images, 3, 2, 1).sum()

    slopes = once(jax.grad(value), jnp.ones((1, 4, 4, 1)))
    assert slopes.min() >= 0
    np.testing.assert_allclose(slopes.sum(), 4)


def test_a_shuffle_takes_channels_in_turn():
    images = np.arange(6.0).reshape(6, 1, 1, 1) * np.ones((1, 2, 3, 4))
    out = layers.shuffle(jnp.asarray(images), 2)
    assert out[:, 1, 2, 3].tolist() == [0, 3, 1, 4, 2, 5]
