from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.problem.models.convolution import convolve, pool

SHAPES = [
    ((1, 28, 28, 12), (10, 1, 5, 5)),
    ((10, 12, 12, 12), (10, 10, 5, 5)),
    ((3, 9, 7, 1), (2, 3, 3, 3)),
    ((2, 5, 5, 3), (4, 2, 5, 5)),
    ((2, 4, 6, 3), (4, 2, 1, 1)),
]
TOLERANCE = {"float64": 1e-12, "float32": 2e-4}


def arrays(dtype, *shapes):
    rng = np.random.default_rng(7)
    return [jnp.asarray(rng.normal(size=shape), dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("images", "kernels"), SHAPES)
def test_both_forms_agree_in_values_and_gradients(images, kernels, dtype):
    with jax.enable_x64(True):
        size = kernels[-1]
        out = (kernels[0], images[1] - size + 1, images[2] - size + 1, images[3])
        x, k, slope = arrays(dtype, images, kernels, out)

        @partial(jax.jit, static_argnums=0)
        def pulled(form):
            value, pull = jax.vjp(lambda x, k: convolve(x, k, form), x, k)
            return value, *pull(slope)

        for patches, native in zip(pulled("patches"), pulled("native"), strict=True):
            assert patches.dtype == jnp.dtype(dtype)
            assert patches.shape == native.shape
            error = jnp.abs(patches - native).max() / jnp.abs(native).max()
            assert error < TOLERANCE[dtype]


def test_a_convolution_is_what_its_definition_says():
    with jax.enable_x64(True):
        x, k = arrays("float64", (2, 6, 5, 3), (4, 2, 3, 3))
        expected = np.zeros((4, 4, 3, 3))
        for d, i, j, s in np.ndindex(*expected.shape):
            expected[d, i, j, s] = np.sum(k[d] * x[:, i : i + 3, j : j + 3, s])
        for form in ("patches", "native"):
            np.testing.assert_allclose(convolve(x, k, form), expected, atol=1e-12)


def test_the_backend_chooses_the_form(monkeypatch):
    x, k = arrays("float32", (1, 6, 6, 2), (2, 1, 3, 3))

    def text():
        return str(jax.make_jaxpr(lambda x, k: convolve(x, k))(x, k))

    assert "conv_general_dilated" not in text()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert "conv_general_dilated" in text()


def test_a_pool_is_what_its_definition_says():
    with jax.enable_x64(True):
        (z,) = arrays("float64", (2, 5, 7, 3))
        expected = np.zeros((2, 2, 3, 3))
        for c, i, j, s in np.ndindex(*expected.shape):
            four = z[c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, s]
            expected[c, i, j, s] = np.max(four)
        np.testing.assert_allclose(pool(z), expected, atol=1e-15)


def test_equal_maxima_share_the_gradient():
    z = jnp.asarray([[3.0, 1.0], [3.0, 2.0]]).reshape(1, 2, 2, 1)
    slope = jax.grad(lambda z: pool(z).sum())(z)
    assert slope.reshape(2, 2).tolist() == [[0.5, 0.0], [0.5, 0.0]]


def test_the_gradient_of_a_maximum_is_that_which_jax_derives():
    with jax.enable_x64(True):
        rng = np.random.default_rng(3)
        z = jnp.asarray(rng.integers(0, 3, (2, 6, 4, 5)), "float64")  # many are equal
        weight = jnp.asarray(rng.normal(size=(2, 3, 2, 5)))

        def derived(z):
            return z.reshape(2, 3, 2, 2, 2, 5).max(axis=(2, 4))

        ours = jax.grad(lambda z: jnp.sum(weight * pool(z)))(z)
        theirs = jax.grad(lambda z: jnp.sum(weight * derived(z)))(z)
        np.testing.assert_allclose(ours, theirs, atol=1e-15)
