"""The loss whose derivative is affine."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.problem.losses import per_sample

Z = np.array([-3.0, -1.0, -0.1, 0.0, 0.4, 2.0])


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def taylor(z: np.ndarray, label: int) -> np.ndarray:
    labels = jnp.full(z.size, label, "int32")
    return np.asarray(per_sample("taylor", jnp.asarray(z)[None], labels))


@pytest.mark.parametrize("label", [0, 1])
def test_taylor_is_the_expansion_of_the_logistic_loss(label: int) -> None:
    sign = 2 * label - 1
    expected = math.log(2) - sign * Z / 2 + Z**2 / 8
    np.testing.assert_allclose(taylor(Z, label), expected, rtol=1e-14)
    # ln(1 + exp(-s z)) is that and -z^4 / 192 and so on, whatever the label.
    near = np.array([-0.1, 0.05, 0.1])
    rest = np.log1p(np.exp(-sign * near)) - taylor(near, label)
    np.testing.assert_allclose(rest, -(near**4) / 192, rtol=5e-3)


@pytest.mark.parametrize("label", [0, 1])
def test_its_derivative_is_affine(label: int) -> None:
    def total(z: jax.Array) -> jax.Array:
        labels = jnp.full(Z.size, label, "int32")
        return per_sample("taylor", z[None], labels).sum()

    slope = jax.grad(total)(jnp.asarray(Z))
    np.testing.assert_allclose(slope, Z / 4 - (label - 0.5), rtol=1e-14)
    # Of a parabola central differences are exact but for rounding, 1e-16 / 1e-3.
    rise = taylor(Z + 1e-3, label) - taylor(Z - 1e-3, label)
    np.testing.assert_allclose(slope, rise / 2e-3, atol=1e-12)


def test_its_precision_is_that_of_the_logits() -> None:
    labels = jnp.zeros(Z.size, "int32")
    for dtype in ("float32", "float64"):
        with jax.enable_x64(dtype == "float64"):
            found = per_sample("taylor", jnp.asarray(Z[None], dtype), labels)
        assert found.dtype == dtype


@pytest.mark.parametrize(("models", "rows"), [(2, 20_000), (5, 10_000), (12, 5_000)])
def test_several_models_have_their_own_losses(models: int, rows: int) -> None:
    """By XLA too: jaxlib 0.10 sums some products of many rows wrongly."""
    rng = np.random.default_rng(0)
    logits = 10 * rng.normal(size=(models, 10, rows))
    labels = rng.integers(0, 10, rows)
    top = logits.max(axis=1)
    log_sum = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
    expected = log_sum - logits[:, labels, np.arange(rows)]
    every = jax.jit(jax.vmap(lambda z, y: per_sample("softmax", z, y), (0, None)))
    single = jnp.asarray(logits, "float32"), jnp.asarray(labels, "int32")
    np.testing.assert_allclose(every(*single), expected, atol=1e-4)
