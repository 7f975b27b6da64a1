"""A dry run finds what is wrong with models, losses and metrics of one's own."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stalesim.simulator.parts import catalogue
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.parts.plugins import VARIABLE
from stalesim.simulator.scenario.scenario import Evaluate, Scenario
from stalesim.simulator.studies import planned
from tests import own_models
from tests.commands import run_in
from tests.support import merge

WRONG = """\
import jax
import jax.numpy as jnp
import numpy as np

from stalesim.simulator.parts.metrics import Metric, Takes

def narrow(num_outputs, num_features):
    return lambda key: jnp.zeros((num_features, 3)), lambda w, x: x @ w

def mean(outputs, targets):
    return outputs.mean()

def drawn(outputs, targets):
    return outputs[:, 0] * np.random.random()

def rooted(outputs, targets):
    return jnp.sqrt((outputs ** 2).sum(axis=1))

def each(outputs, targets):
    return outputs[:, 0]

def count(outputs, targets):
    return (outputs > 0).sum()

def aloud(outputs, targets):
    jax.debug.print("{}", outputs.sum())
    return outputs.mean()

def failing(outputs, targets):
    return outputs @ targets

def metric(name):
    return Metric(name, f"wrong_here:{name}", takes=Takes.OUTPUTS)

STALESIM = {"metrics": tuple(map(metric, ("each", "count", "aloud", "failing")))}
"""
SCENARIO: dict[str, Any] = {
    "name": "wrong",
    "clients": {"compute": {"law": "expon"}},
    "problem": {
        "data": {"kind": "digits", "limit": 200},
        "partition": {"kind": "iid", "clients": 3},
        "model": {"kind": "python", "build": "tests.own_models:linear"},
    },
    "protocol": {"kind": "asynchronous"},
    "algorithm": {"kind": "sgd", "step_size": 0.2, "batch": 8},
    "stop": {"commits": 30},
    "evaluate": {"every": {"commits": 15}, "metrics": ["test_loss"]},
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "wrong_here.py").write_text(WRONG, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(VARIABLE, "wrong_here")
    forget()
    yield tmp_path
    monkeypatch.delenv(VARIABLE)
    forget()
    sys.modules.pop("wrong_here", None)


def forget() -> None:
    """Makes the classes anew, which know all metrics once they are used."""
    catalogue.registered.cache_clear()
    for config in (Evaluate, Scenario):
        config.model_rebuild(force=True)


def loss(name: str) -> dict[str, Any]:
    return {"problem": {"loss": f"wrong_here:{name}"}}


def evaluated(name: str) -> dict[str, Any]:
    return {"evaluate": {"metrics": ["test_loss", name]}}


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "model": (
        {"problem": {"model": {"kind": "python", "build": "wrong_here:narrow"}}},
        r"problem\.model\.build must give outputs of the shape \[S, 10\]",
    ),
    "loss, shape": (loss("mean"), r"problem\.loss must give a number of each row"),
    "loss, side effect": (loss("drawn"), r"problem\.loss must depend on its arguments"),
    "loss, slope": (loss("rooted"), r"problem\.loss must have a finite gradient"),
    "loss, error": (loss("failing"), r"problem\.loss must be a function .* TypeError"),
    "metric, shape": (evaluated("each"), "metrics: each must be one floating number"),
    "metric, type": (evaluated("count"), "metrics: count must be one .* type int32"),
    "metric, side effect": (evaluated("aloud"), "metrics: aloud must not call Python"),
    "metric, error": (evaluated("failing"), "metrics: failing must be a function"),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_found_before_a_run(name: str) -> None:
    change, says = CASES[name]
    scenario = Scenario.model_validate(merge(SCENARIO, change))
    with pytest.raises(ScenarioError, match=says) as error:
        planned(scenario)
    assert "\n" not in str(error.value)


def test_what_is_right_is_planned() -> None:
    own = {"problem": {"loss": "tests.own_models:cross_entropy"}}
    runs, _ = planned(Scenario.model_validate(merge(SCENARIO, own)))
    assert len(runs) == 1
    assert own_models.cross_entropy.__name__ == "cross_entropy"


@pytest.mark.slow
def test_a_dry_run_says_it_in_one_line(here: Path) -> None:
    tree = merge(SCENARIO, loss("mean"))
    del tree["problem"]["model"]
    (here / "scenario.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    done = run_in(here, "run", "scenario.yaml", "--dry-run", status=2)
    assert "problem.loss must give a number of each row" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (here / "runs").exists()
