"""The table of other simulators: what shows each answer of ours, and its form."""

from pathlib import Path

import pytest
import yaml

from evidence.generators import goals
from stalesim.simulator.scenario.reading import read_any

ROOT = Path(__file__).parents[2]
LISTED = goals.read(ROOT)
SHOWN = sorted({path for row in LISTED.rows for path in goals.ours(row).shown})


def test_what_shows_an_answer_exists() -> None:
    assert goals.mistakes(ROOT) == []


@pytest.mark.parametrize("file", [path for path in SHOWN if "::" not in path])
def test_each_scenario_is_read(file: str) -> None:
    assert read_any(ROOT / file).name


def test_every_row_has_every_system_and_nothing_twice() -> None:
    named = [row["what"] for row in LISTED.rows]
    assert len({*named}) == len(named)
    for row in LISTED.rows:
        assert {*row} == {"topic", "what", "sought", "ours", *LISTED.systems}


@pytest.mark.parametrize(
    "said",
    [
        "{yes: [tests/evidence/test_goals.py::test_of_nothing]}",
        "{yes: [scenarios/of_nothing.yaml]}",
        "{yes: [evidence/goals.yaml]}",
        "{yes: []}",
        "{partly: [scenarios/quickstart.yaml], but: ''}",
    ],
)
def test_an_answer_without_evidence_is_refused(said: str, tmp_path: Path) -> None:
    (tmp_path / "evidence").mkdir()
    for folder in ("scenarios", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    row = {"topic": "", "what": "a thing", "ours": yaml.safe_load(said)}
    (tmp_path / goals.LISTED).write_text(yaml.safe_dump({"systems": {}, "rows": [row]}))
    assert len(goals.mistakes(tmp_path)) == 1
