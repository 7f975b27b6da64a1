"""Fragments of the page of words: each is a scenario that runs."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stalesim import simulate
from stalesim.simulator.cli.runs import recorder_of
from stalesim.simulator.parts.base import Part, meanings
from stalesim.simulator.parts.catalogue import classes, listing
from stalesim.simulator.parts.errors import documented
from stalesim.simulator.scenario.reading import loads_any
from stalesim.simulator.scenario.study import merge

PAGE = Path(__file__).parents[3] / "docs" / "families" / "words.md"
_, _, TABLE = PAGE.read_text(encoding="utf-8").partition("## Names of methods")
ROWS = [
    [cell.strip() for cell in line.split("|")[1:4]]
    for line in TABLE.splitlines()
    if line.startswith("| ") and "`" in line
]
ENDS = {"commits": 12}
BASE: dict[str, Any] = {"name": "words", "clients": {"compute": {"law": "expon"}}}
WORLD: dict[str, Any] = {"clients": {"number": 4}, "job": {}, "stop": ENDS}
LEARNING: dict[str, Any] = {
    "problem": {
        "data": {"kind": "digits", "limit": 80},
        "partition": {"kind": "iid", "clients": 4},
    },
    "stop": ENDS,
    "evaluate": {"every": {"commits": 12}, "metrics": ["test_loss"]},
}


def test_the_literature_is_there() -> None:
    names = "; ".join(name for name, _, _ in ROWS)
    assert len(ROWS) > 20
    for word in (
        *("K-sync", "K-batch-sync", "K-async", "K-batch-async", "SSP", "deadline"),
        *("over-selection", "partial participation", "semi-asynchronous", "local SGD"),
        *("bounded staleness", "wait-free", "backup workers", "token accounts"),
    ):
        assert word in names


def test_parts_are_described_in_the_words_that_pages_have() -> None:
    kinds = sorted({kind for kind, *_ in listing()})
    for part in (part for kind in kinds for part in classes(kind, Part)):
        ours = documented(part.model_fields)
        for text in (part.__doc__ or "", *meanings(part).values()):
            assert not ours.keys() & {*re.findall(r"`(\w+)`", text)}, part


@pytest.mark.parametrize(("name", "fragment", "_"), ROWS, ids=[row[0] for row in ROWS])
def test_each_fragment_is_a_scenario(
    name: str, fragment: str, _: str, tmp_path: Path
) -> None:
    del name
    tree = yaml.safe_load("{" + fragment.strip("`") + "}")
    learns = "algorithm" in tree
    scenario = loads_any(
        yaml.safe_dump(merge(merge(BASE, LEARNING if learns else WORLD), tree)), "words"
    )
    if learns:
        study = simulate(scenario, tmp_path / "study")
    else:
        study = recorder_of(scenario)(scenario, tmp_path / "study", lambda _: None)
    (run,) = study.manifest["runs"]
    assert run["commits"] >= 12
    assert run["stop_reason"] == "the stated number of commits was made"
