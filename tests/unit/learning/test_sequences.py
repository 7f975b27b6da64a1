"""Rows that are sequences: frames with classes of their own, and tokens of a text."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import yaml

from stalesim.simulator.catalogue.data.synthetic import SyntheticSeries
from stalesim.simulator.catalogue.models.lstm.network import LstmNetwork
from stalesim.simulator.catalogue.models.lstm.part import Lstm
from stalesim.simulator.engine import client_work
from stalesim.simulator.files.timeline import NO_SAMPLE
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.parts.metrics import metric
from stalesim.simulator.problem.learning import dataset
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
LANGUAGE: dict[str, Any] = {
    "problem": {
        "data": {"kind": "text", "scale": "raw", "block": 16, "test_fraction": 0.005},
        "model": {"kind": "transformer", "layers": 1, "heads": 2, "width": 16},
        "partition": {"kind": "contiguous", "clients": 5},
        "l2": 0.0,
    },
    "algorithm": {
        "step_size": 0.01,
        "batch": 16,
        "optimizer": {"kind": "adam", "second_decay": 0.99, "small": 1e-8},
    },
    "clients": {"compute": {"law": "expon"}},
    "stop": {"commits": 150},
    "evaluate": {
        "every": {"commits": 75},
        "metrics": ["test_loss", "test_perplexity", "test_accuracy"],
    },
}
FRAMES, TEXT = (SGD, TINY), (SGD, LANGUAGE)


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
        problem = prepared(*FRAMES, change, double).problem
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
def test_a_run_learns_frames() -> None:
    run = prepared(*FRAMES)
    assert run.shape.num_weights == run.problem.model.num_weights
    memory, _ = execute([run])
    losses = memory.column("evaluations", "test_loss")
    assert losses.size == 3
    np.testing.assert_allclose(losses[0], np.log(10), rtol=0.02)
    assert losses[1] < losses[0] - 0.1
    assert losses[2] < losses[1] - 0.1
    # Chance is 0.1.
    assert memory.column("evaluations", "test_accuracy")[-1] > 0.2


def test_perplexity_is_the_exponential_of_the_loss_of_each_next_character() -> None:
    with jax.enable_x64(True):
        problem = prepared(*TEXT, {"engine": {"precision": "float64"}}).problem
        weights = 5 * problem.start(jax.random.key(0))
        asked = ("test_loss", "test_perplexity")
        found = jax.jit(lambda w: problem.evaluate(w, asked))(weights)
        logits = np.asarray(jax.jit(problem.model.apply)(weights, problem.x_test))
    rows = np.asarray(problem.x_test)
    labels = np.asarray(problem.y_test).reshape(rows.shape)
    # A label is the next token of its row, except of the last one.
    np.testing.assert_array_equal(labels[:, :-1], rows[:, 1:])
    chance = np.exp(logits - logits.max(axis=0))
    chance /= chance.sum(axis=0)
    logs = [np.log(chance[y, i]) for i, y in enumerate(labels.ravel())]
    np.testing.assert_allclose(found["test_loss"], -np.mean(logs), rtol=1e-10)
    geometric = np.exp(-np.mean(logs))
    np.testing.assert_allclose(found["test_perplexity"], geometric, rtol=1e-10)


def test_perplexity_falls_and_has_no_unit_of_its_own() -> None:
    found = metric("test_perplexity")
    assert (found.higher_is_better, found.unit, found.worst) == (False, "classes", None)


@pytest.mark.slow
def test_a_run_learns_what_comes_next() -> None:
    run = prepared(*TEXT)
    assert run.shape.num_weights == run.problem.model.num_weights
    memory, _ = execute([run])
    losses = memory.column("evaluations", "test_loss")
    perplexity = memory.column("evaluations", "test_perplexity")
    np.testing.assert_allclose(losses[0], np.log(65), rtol=0.01)
    np.testing.assert_allclose(perplexity, np.exp(losses), rtol=1e-5)
    # The frequencies of single characters have 3.3 nats.
    assert losses[-1] < 3.2


@pytest.mark.long
def test_engines_agree() -> None:
    short = {
        "engine": {"precision": "float64"},
        "stop": {"commits": 12},
        "evaluate": {"every": {"commits": 6}},
        "algorithm": {"batch": 4},
    }
    found: list[Any] = []
    with jax.enable_x64(True):
        for mode in ("stepwise", "compiled", "batched", "shared"):
            seeds = [(1, 0), (1 if mode == "shared" else 2, 1)]
            runs = [prepared(*TEXT, short, seed=s, number=n) for s, n in seeds]
            runs = runs[:1] if mode in ("stepwise", "compiled") else runs
            memory, _ = execute(runs, mode)
            found.append(memory.column("evaluations", "test_loss"))
    for other in found:
        assert other.size == 3
        # Roundings of 1e-16 grow to 3e-10: Adam's first steps are signs.
        np.testing.assert_allclose(other, found[0], rtol=1e-8)
    assert found[0][-1] < found[0][0] - 0.1


BASES: dict[str, Any] = {"frames": FRAMES, "text": TEXT, "parties": ()}
CASES = yaml.safe_load(Path(__file__).with_name("refused_rows.yaml").read_text())


@pytest.mark.parametrize(("base", "problem", "says"), CASES)
def test_rows_that_a_model_does_not_take(
    base: str, problem: dict[str, Any], says: str
) -> None:
    with pytest.raises(ScenarioError) as error:
        prepared(*BASES[base], {"problem": problem})
    assert str(error.value).startswith(says)
    assert "\n" not in str(error.value)


def test_a_text_of_two_characters_has_one_logit(tmp_path: Any) -> None:
    path = tmp_path / "bits.txt"
    draw = np.random.default_rng(0).integers(0, 2, 4000)
    path.write_text("".join(map(str, draw)), encoding="utf-8")
    bits = {"path": str(path), "test_fraction": 0.2}
    run = prepared(*TEXT, {"problem": {"data": bits}})
    assert run.problem.model.num_outputs == 1
    found = jax.jit(lambda w: run.problem.evaluate(w, ("test_perplexity",)))(
        run.problem.start(jax.random.key(0))
    )
    np.testing.assert_allclose(found["test_perplexity"], 2, rtol=0.01)
    assert jnp.isfinite(found["test_perplexity"])


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
