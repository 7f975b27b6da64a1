"""Every scenario that ships: its schema, all of its runs, and the items of its page."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from stalesim.analysis.linting import findings
from stalesim.analysis.page import method, runs
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.schema import schema
from stalesim.simulator.scenario.setting import BaseScenario
from stalesim.simulator.scenario.study import expand
from tests.golden import pins

FOLDER = Path(__file__).parents[3] / "scenarios"
FILES = sorted(FOLDER.rglob("*.yaml"))
ITEMS = [
    *("1.1", "1.2", "1.3"),
    *("2.1", "2.2", "2.3", "2.4", "2.5"),
    *("3.1", "3.2", "3.3", "3.4"),
    *("4.1", "4.2", "4.3"),
    *("5.1", "5.2", "5.3", "5.4"),
    "6.1",
]
"""All twenty of STRESS-DES."""


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return Draft202012Validator(schema())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_is_read_and_described(
    path: Path, validator: Draft202012Validator
) -> None:
    text = path.read_text(encoding="utf-8")
    assert [*validator.iter_errors(yaml.safe_load(text))] == []
    scenario = read_any(path)
    expanded = expand(scenario)
    assert len(expanded) >= scenario.replicates
    assert {run.variant for run in expanded} == set(scenario.variants or ["base"])
    if isinstance(scenario, BaseScenario):
        kind = {} if isinstance(scenario, Scenario) else {"kind": "timeline"}
        check_items(manifest_of(scenario, expanded, **kind))
    if isinstance(scenario, Scenario):
        assert findings(scenario) == []


def test_every_scenario_is_pinned() -> None:
    new = [name for name in pins.NAMES if not pins.pinned(name)]
    assert not new, f"python -m tests.golden.pins write {' '.join(new)}"


def check_items(manifest: dict[str, Any]) -> None:
    """Checks that every item of the page's checklist is filled, in words."""
    runs.check(manifest, "here")
    sections = method.checklist(manifest)
    assert len(sections) == 6
    found = [item for items in sections.values() for item in items]
    assert [item.number for item in found] == ITEMS
    for item in found:
        assert item.text or item.rows or item.steps, item.number
    for text in words_of(sections):
        assert isinstance(text, str)
        assert text.strip()
        assert "None" not in text.split()
        assert "{'" not in text
        assert "not here" not in text  # every part describes itself
    steps = found[ITEMS.index("2.1")].steps
    assert steps[-1][0] == "commit"
    assert len(steps) >= 2
    assert len(dict(steps)) == len(steps)


def manifest_of(scenario: Any, expanded: list[Any], **own: str) -> dict[str, Any]:
    """Returns the manifest that a study of a scenario would have at its end.

    Args:
        scenario: Scenario of the study.
        expanded: Its runs.
        own: Entries that only a world alone has.
    """
    tree = scenario.model_dump(mode="json")
    made = [
        {
            "run": run.number,
            "label": run.label,
            "variant": run.variant,
            "parameters": run.parameters,
            "replicate": run.replicate,
            "seed": run.seed,
            "mode": "compiled",
            **of_clients(run.scenario),
            "algorithm": (tree.get("algorithm") or {}).get("kind"),
            "facts": run.scenario.described(),
            "stop": "time",
            "stop_reason": "the stated virtual time was reached",
            "commits": 10 + run.number,
            "virtual_s": 2.5,
            "elapsed_s": 0.5,
            "dataset": "some",
            "scenario": run.scenario.model_dump(mode="json"),
        }
        for run in expanded[:40]
    ]
    of_study = {key: tree[key] for key in ("name", "source", "question")}
    environment = {"python": "3.11.7", "cores": 2, "simpy": "4.1.2", "stalesim": "9"}
    end = {"status": "complete", "environment": environment, "commit": "c0ffee"}
    return {**own, **of_study, **end, "scenario": tree, "runs": made}


def of_clients(scenario: Any) -> dict[str, Any]:
    """Returns who takes part in a run; nothing of a world that an extra plays."""
    if not isinstance(scenario, BaseScenario):
        return {}
    return {"num_clients": scenario.num_clients, "protocol": scenario.protocol.kind}


def words_of(sections: Any) -> Iterator[str]:
    for items in sections.values():
        for item in items:
            yield from item.text
            yield from itertools.chain(*item.rows, *item.steps)
