"""Columns of zeros that align rows are seen nowhere but in registers and features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.engine import client_work
from stalesim.simulator.problem import horizontal
from stalesim.simulator.problem.data.base import Dataset
from stalesim.simulator.problem.horizontal import HorizontalProblem
from stalesim.simulator.problem.models.linear.network import LinearClassifier

CLASSES, SAMPLES = 3, 40


def problem(num_features: int) -> HorizontalProblem:
    """Returns a problem of random data, in double precision."""
    rng = np.random.default_rng(5)
    x = rng.random((2 * SAMPLES, num_features))
    y = rng.integers(0, CLASSES, 2 * SAMPLES).astype(np.int32)
    return horizontal.build(
        Dataset(
            "random", x[:SAMPLES], y[:SAMPLES], x[SAMPLES:], y[SAMPLES:], CLASSES, ()
        ),
        LinearClassifier(CLASSES, num_features),
        2,
        loss="softmax",
        reduction="mean",
        l2=0.1,
        dtype="float64",
    )


@pytest.mark.parametrize(
    ("num_features", "spare"), [(64, 0), (254, 0), (255, 0), (256, 15), (784, 15)]
)
def test_only_wide_rows_are_aligned(num_features: int, spare: int) -> None:
    with jax.enable_x64(True):
        made = problem(num_features)
        assert made.spare == spare
        assert made.x.shape == (SAMPLES, num_features + 1 + spare)
        assert made.x_test.shape == made.x.shape
        start = made.start(jax.random.key(0))
        assert start.shape == (CLASSES, num_features + 1)
        held = made.registers(4, start + 1)
        assert held.shape == (4, CLASSES, num_features + 1 + spare)
        assert (held[0, :, : num_features + 1] == 1).all()
        assert held.sum() == start.size


def test_wide_weights_have_the_loss_and_gradient_of_narrow_ones() -> None:
    with jax.enable_x64(True):
        made = problem(300)
        assert made.spare
        weights = jax.random.normal(jax.random.key(1), (CLASSES, 301))
        wide = made.registers(1, weights)[0]
        samples = jnp.arange(3, 11)
        loss, gradient = client_work.gradient_of(made, wide, samples)
        narrow = client_work.gradient_of(made, weights, samples)
        # The definition, without any of the program's code.
        x = np.asarray(made.x[3:11, :301])
        logits = x @ np.asarray(weights).T
        chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        own = np.asarray(made.y[3:11])
        expected = -np.log(chances[np.arange(8), own]).mean()
        errors = (chances - np.eye(CLASSES)[own]) / 8
        penalty = 0.1 * np.asarray(weights)
        penalty[:, -1] = 0
        # Sums of 301 numbers of order one, in double precision.
        near = {"rtol": 1e-12, "atol": 1e-12}
        np.testing.assert_allclose(loss, expected, **near)
        np.testing.assert_allclose(gradient, errors.T @ x + penalty, **near)
        np.testing.assert_allclose(narrow[0], loss, **near)
        np.testing.assert_allclose(narrow[1], gradient, **near)
        found = client_work.local_steps(
            made, wide, jnp.stack([samples, samples + 9]), jnp.asarray(0.1)
        )
        again = client_work.local_steps(
            made, weights, jnp.stack([samples, samples + 9]), jnp.asarray(0.1)
        )
        assert found.message.shape == weights.shape
        np.testing.assert_allclose(found.message, again.message, **near)
