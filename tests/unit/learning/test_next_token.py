"""Runs on a text: perplexity, refusals, and a model that learns what comes next."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.metrics import metric
from tests.runs import execute, prepared
from tests.support import SGD

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
BASE = (SGD, LANGUAGE)


def test_perplexity_is_the_exponential_of_the_loss_of_each_next_character() -> None:
    with jax.enable_x64(True):
        problem = prepared(*BASE, {"engine": {"precision": "float64"}}).problem
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
    run = prepared(*BASE)
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
            runs = [prepared(*BASE, short, seed=s, number=n) for s, n in seeds]
            runs = runs[:1] if mode in ("stepwise", "compiled") else runs
            memory, _ = execute(runs, mode)
            found.append(memory.column("evaluations", "test_loss"))
    for other in found:
        assert other.size == 3
        # Roundings of 1e-16 grow to 3e-10: Adam's first steps are signs.
        np.testing.assert_allclose(other, found[0], rtol=1e-8)
    assert found[0][-1] < found[0][0] - 0.1


REFUSED: dict[str, dict[str, Any]] = {
    "problem.model.kind must be for tokens, as tinyshakespeare has them, got 'lstm'": {
        "problem": {"model": {"kind": "lstm"}}
    },
    "problem.model.kind must be sequential for tinyshakespeare, each of whose rows": {
        "problem": {"model": {"kind": "linear"}}
    },
    "problem.model.kind must be for features, as synthetic_series has them, got 'tr": {
        "problem": {"data": {"kind": "synthetic_series", "labels": "frame"}}
    },
    "problem.model.kind must be for one class a row, as digits has it, got 'transf": {
        "problem": {"data": {"kind": "digits"}}
    },
    "evaluate.metrics must have test_perplexity only with the loss softmax": {
        "problem": {"loss": "hinge"}
    },
}


@pytest.mark.parametrize("says", REFUSED)
def test_refusals(says: str) -> None:
    with pytest.raises(ScenarioError) as error:
        prepared(*BASE, REFUSED[says])
    assert str(error.value).startswith(says)
    assert "\n" not in str(error.value)


def test_parties_have_no_tokens() -> None:
    model = {"kind": "transformer"}
    with pytest.raises(ScenarioError, match="must not be 'transformer' for parties"):
        prepared({"problem": {"model": model, "server": {"width": 4}}})


def test_a_text_of_two_characters_has_one_logit(tmp_path: Any) -> None:
    path = tmp_path / "bits.txt"
    draw = np.random.default_rng(0).integers(0, 2, 4000)
    path.write_text("".join(map(str, draw)), encoding="utf-8")
    bits = {"path": str(path), "test_fraction": 0.2}
    run = prepared(*BASE, {"problem": {"data": bits}})
    assert run.problem.model.num_outputs == 1
    found = jax.jit(lambda w: run.problem.evaluate(w, ("test_perplexity",)))(
        run.problem.start(jax.random.key(0))
    )
    np.testing.assert_allclose(found["test_perplexity"], 2, rtol=0.01)
    assert jnp.isfinite(found["test_perplexity"])
