"""The JSON schema, by a validator: mistakes and where; what passes: `test_shipped`."""

import copy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from stalesim.simulator.scenario.schema import schema
from tests.support import table

ROOT = Path(__file__).parents[3]


@cache
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(schema())
    return Draft202012Validator(schema())


def told(tree: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns what is wrong: the dotted key of each mistake, and the message."""
    return [
        (".".join(map(str, error.absolute_path)), error.message)
        for error in validator().iter_errors(tree)
    ]


def changed(**entries: Any) -> dict[str, Any]:
    path = ROOT / "scenarios" / "quickstart_vafl.yaml"
    tree = copy.deepcopy(yaml.safe_load(path.read_text(encoding="utf-8")))
    for key, value in entries.items():
        both = isinstance(tree.get(key), dict) and isinstance(value, dict)
        tree[key] = tree[key] | value if both else value
    return tree


@pytest.mark.parametrize(("entries", "key", "words"), table(__file__))
def test_mistakes_are_told_where_they_are(
    entries: dict[str, Any], key: str, words: str
) -> None:
    found = told(changed(**entries))
    assert any(where == key and words in message for where, message in found), found
    assert not any("any of the given schemas" in message for _, message in found)


def test_a_world_has_no_metrics_and_a_study_no_job() -> None:
    world = ROOT / "scenarios" / "studies" / "churn.yaml"
    tree = yaml.safe_load(world.read_text(encoding="utf-8"))
    assert told(tree | {"job": {"samples": 5}}) == []
    assert told(tree | {"evaluate": {"every": {"time": 1}}}) != []
    assert told(changed(job={"samples": 5})) != []


def test_a_law_of_any_name_of_scipy_has_its_own_parameters() -> None:
    law = {"law": "weibull_min", "c": 2, "scale": [1, 2, 3, 4]}
    assert told(changed(clients={"compute": law})) == []


def test_a_chain_needs_no_kind_and_its_stages_are_checked() -> None:
    chain = [{"kind": kind} for kind in ("local_work", "weigh", "mean", "step")]
    usual = {"step_size": 0.1, "batch": 8}
    tree = changed()
    for kind in ({}, {"kind": "chained"}):
        tree["algorithm"] = {**usual, **kind, "chain": chain}
        assert told(tree) == []
    chain[0]["local_stps"] = 2
    found = told(tree)
    assert [where for where, _ in found] == ["algorithm.chain.0"]
    assert "'local_stps' was unexpected" in found[0][1]


def test_the_schema_lists_what_exists_and_lets_shape_parameters_be() -> None:
    described = schema()
    assert {"claims", "job"} <= {*described["properties"]}
    parts = described["$defs"]
    assert parts["TSynchronous"]["required"] == ["t"]
    assert "parameters" not in parts["Scipy"]["properties"]
    assert parts["Scipy"]["additionalProperties"] != {}
    assert "constant" in parts["Scipy"]["properties"]["law"]["not"]["enum"]
