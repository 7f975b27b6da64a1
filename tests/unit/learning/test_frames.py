"""Rows whose frames have classes of their own: losses, refusals, and whole runs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from stalesim.simulator.algorithms import client_work
from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.data.synthetic import SyntheticSeries
from stalesim.simulator.learning.learning import dataset
from stalesim.simulator.models.lstm.network import LstmNetwork
from stalesim.simulator.models.lstm.part import Lstm
from stalesim.simulator.timeline import NO_SAMPLE
from tests.runs import execute, prepared
from tests.support import SGD

TINY: dict[str, Any] = {
    "problem": {
        "data": {
            "kind": "synthetic_series",
            "labels": "frame",
            "num_classes": 10,
            "frames": 21,
            "features": 40,
            "num_samples": 2500,
            "limit": 400,
            "scale": "standard",
        },
        "model": {"kind": "lstm", "layers": 2, "cells": 8, "projection": 8},
        "l2": 0.0,
    },
    "algorithm": {"step_size": 0.05, "batch": 8, "optimizer": {"kind": "adam"}},
    "protocol": {"kind": "synchronous"},
    "clients": {"compute": {"law": "constant", "value": 1}},
    "stop": {"commits": 40},
    "evaluate": {"every": {"commits": 20}},
}
BASE = (SGD, TINY)


def slow_losses(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the cross-entropy of each frame, `[S, L]`, of logits `[C, S L]`."""
    z = logits.reshape(logits.shape[0], *y.shape)
    log_sum = np.log(np.exp(z).sum(axis=0))
    rows, frames = np.indices(y.shape)
    return log_sum - z[y, rows, frames]


@pytest.mark.long
def test_losses_are_means_over_frames() -> None:
    with jax.enable_x64(True):
        change = {"problem": {"data": {"limit": 60}, "model": {"layers": 1}}}
        double = {"engine": {"precision": "float64"}}
        problem = prepared(*BASE, change, double).problem
        weights = 3 * problem.start(jax.random.key(0))
        samples = jnp.array([5, 2, 9, NO_SAMPLE, NO_SAMPLE])
        found, gradient = jax.jit(client_work.gradient_of)(problem, weights, samples)
        bound = jnp.asarray(1e9)
        each = jax.jit(client_work.clipped_per_sample)(problem, weights, samples, bound)
        asked = ("test_accuracy", "test_loss", "objective")
        metrics = jax.jit(lambda w: problem.evaluate(w, asked))(weights)
        apply = jax.jit(problem.model.apply)
        at_test = np.asarray(apply(weights, problem.x_test))
        at_train = np.asarray(apply(weights, problem.x))
    y, y_test = np.asarray(problem.y), np.asarray(problem.y_test)
    trained = slow_losses(at_train, y)
    expected = trained[[5, 2, 9]]
    assert expected.shape == (3, 21)
    np.testing.assert_allclose(found, expected.mean(), rtol=1e-10)
    # Without clipping in effect: the same loss, gradient and message.
    np.testing.assert_allclose(each.loss, found, rtol=1e-10)
    np.testing.assert_allclose(each.message, gradient, atol=1e-12)
    right = at_test.argmax(axis=0) == y_test
    np.testing.assert_allclose(metrics["test_accuracy"], right.mean(), rtol=1e-10)
    tested = slow_losses(at_test, y_test.reshape(-1, 21))
    np.testing.assert_allclose(metrics["test_loss"], tested.mean(), rtol=1e-10)
    np.testing.assert_allclose(metrics["objective"], trained.mean(), rtol=1e-10)


@pytest.mark.slow
def test_a_run_learns() -> None:
    run = prepared(*BASE)
    assert run.shape.num_weights == run.problem.model.num_weights
    memory, _ = execute([run])
    losses = memory.column("evaluations", "test_loss")
    assert losses.size == 3
    np.testing.assert_allclose(losses[0], np.log(10), rtol=0.02)
    assert losses[1] < losses[0] - 0.1
    assert losses[2] < losses[1] - 0.1
    # Chance is 0.1.
    assert memory.column("evaluations", "test_accuracy")[-1] > 0.2


REFUSED: dict[str, dict[str, Any]] = {
    "problem.model.kind must be sequential for synthetic_series": {
        "problem": {"model": {"kind": "linear"}}
    },
    "problem.model.kind must be for one class a row, as digits has it, got 'lstm'": {
        "problem": {"data": {"kind": "digits"}}
    },
    "problem.model.frames must be the 21 of problem.data.frames, got 7": {
        "problem": {"model": {"frames": 7}}
    },
    "problem.partition.kind must not be 'labels' for synthetic_series": {
        "problem": {
            "partition": {"kind": "labels", "clients": 2, "classes_per_client": 2}
        }
    },
    "problem.partition.kind must not be 'dirichlet' for synthetic_series": {
        "problem": {"partition": {"kind": "dirichlet", "clients": 2, "alpha": 1.0}}
    },
}


@pytest.mark.parametrize("says", REFUSED)
def test_refusals(says: str) -> None:
    with pytest.raises(ScenarioError) as error:
        prepared(*BASE, REFUSED[says])
    assert str(error.value).startswith(says)
    assert "\n" not in str(error.value)


def test_frames_are_no_columns_of_parties() -> None:
    change = {"problem": {"data": TINY["problem"]["data"]}}
    with pytest.raises(ScenarioError, match=r"kind must be one by rows for synthetic_"):
        prepared(change)


@pytest.mark.long
def test_neighbours_help() -> None:
    """A small LSTM beats what is learned of frames one by one, the linear optimum."""
    tree = TINY["problem"]["data"] | {"limit": None}
    data = dataset(SyntheticSeries.model_validate(tree))
    x, y, x_test, y_test = map(jnp.asarray, (data.x_train, data.y_train, *data[3:5]))
    of_frames = (x.reshape(-1, 40), y.reshape(-1)), (x_test.reshape(-1, 40), y_test)

    def linear(weights: jax.Array, x: jax.Array) -> jax.Array:
        return weights[:, :-1] @ x.T + weights[:, -1:]

    network = LstmNetwork(Lstm(layers=1, cells=32, projection=64), 10, 21 * 40)
    begin = network.init(jax.random.key(0))
    alone = _trained(linear, jnp.zeros((10, 41)), of_frames, batch=512, epochs=3)
    found = _trained(
        network.apply, begin, ((x, y), (x_test, y_test)), batch=32, epochs=2
    )
    # Its optimum is 0.92; the network reaches 0.44 after four epochs.
    assert 0.9 < alone < 1.0
    assert found < alone - 0.4


def _trained(apply: Any, weights: Any, data: Any, *, batch: int, epochs: int) -> float:
    """Returns the loss on test data after some epochs of Adam."""
    optimizer = optax.adam(3e-3)
    (x, y), test = data

    @jax.jit
    def loss(weights: Any, x: Any, y: Any) -> Any:
        logits = apply(weights, x).T
        return optax.softmax_cross_entropy_with_integer_labels(
            logits, y.reshape(-1)
        ).mean()

    @jax.jit
    def step(weights: Any, state: Any, rows: Any) -> Any:
        gradient = jax.grad(loss)(weights, x[rows], y[rows])
        change, state = optimizer.update(gradient, state)
        return optax.apply_updates(weights, change), state

    state, rng = optimizer.init(weights), np.random.default_rng(0)
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x) - batch + 1, batch):
            weights, state = step(weights, state, order[start : start + batch])
    return float(loss(weights, *test))
