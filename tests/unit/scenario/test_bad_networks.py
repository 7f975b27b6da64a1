"""Networks at parties and server, and noise inside them, that do not fit: one line."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.scenario.reading import read
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import merge
from tests.support import SGD, VAFL, scenario

SERVER = {"width": 4}
HIDDEN = {"std": 0.1, "hidden": {"uniform": [0.1, 0.1]}}


def problem(**entries: Any) -> dict[str, Any]:
    return {"problem": entries}


def noise(**entries: Any) -> dict[str, Any]:
    return {"algorithm": {"perturbation": entries}}


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "lstm without a server": (
        problem(model={"kind": "lstm"}),
        r"problem\.server is missing; the model 'lstm' of a party needs server",
    ),
    "heads that do not divide": (
        problem(model={"kind": "transformer", "heads": 5}),
        r"problem\.model\.heads must divide the width of 64, got 5; change one",
    ),
    "classes of a text": (
        problem(data={"kind": "text", "scale": "raw", "classes": [0, 1]}),
        r"problem\.data\.classes must not be set for text, each of whose characters",
    ),
    "scale of a text": (
        problem(data={"kind": "text", "scale": "unit"}),
        r"problem\.data\.scale must be raw for text, whose .* got 'unit'; leave it out",
    ),
    "a smoothed gradient without noise": (
        {"evaluate": {"metrics": ["smoothed_gradient_norm_squared"]}},
        r"evaluate\.metrics must not have smoothed_gradient_norm_squared without noise",
    ),
    "no width": (problem(server={"views": 2}), r"problem\.server\.width is missing"),
    "noise in one layer": (
        noise(std=0.1, hidden={"std": 0.1}),
        r"hidden must not be set for the model 'linear', which has one layer; remove",
    ),
    "noise in too many layers": (
        merge(problem(model={"kind": "mlp"}), noise(**HIDDEN)),
        r"hidden\.uniform must have 1 numbers, one for each layer .* got 2; change it",
    ),
    "two laws": (
        noise(std=0.1, hidden={"std": 0.1, "uniform": 0.1}),
        r"must have either uniform or std, not both or neither; keep one",
    ),
    "noise of another job": (
        merge(
            problem(model={"kind": "dense"}, server=SERVER),
            {
                "algorithm": {
                    "perturbation": {"std": 0.1},
                    "client_order": "query_first",
                }
            },
        ),
        r"client_order must be 'upload_first' with noise inside a network",
    ),
    "privacy of a network": (
        merge(
            problem(model={"kind": "dense"}, server=SERVER),
            noise(std=0.1, input_diameter=1.0),
        ),
        r"input_diameter must not be set for the model 'dense'",
    ),
}


def complaint(folder: Path, *changes: dict[str, Any]) -> str:
    """Returns the one line that reading says of the small study, changed."""
    tree = VAFL
    for change in changes:
        tree = merge(tree, change)
    path = folder / "bad.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        read(path)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line(name: str, tmp_path: Path) -> None:
    changes, words = MISTAKES[name]
    assert re.search(words, complaint(tmp_path, changes))


def test_clients_with_all_columns_have_no_server_network(tmp_path: Path) -> None:
    said = complaint(tmp_path, SGD, problem(server=SERVER))
    assert "problem.server must not be set for a problem whose clients hold all" in said


def test_a_network_is_written() -> None:
    written = scenario(problem(server=SERVER)).model_dump(mode="json")
    assert Scenario.model_validate(written).problem.server.width == 4
