"""Every mistake ends in one line with the file, the line, what and the remedy."""

from pathlib import Path

import pytest

from stalesim.simulator.scenario.reading import loads_any
from tests.unit.scenario.mistakes import TABLES, cases, changed, complaint


@pytest.mark.parametrize(("table", "case"), cases("bad"))
def test_a_mistake_is_one_line(table: str, case: str, tmp_path: Path) -> None:
    changes, place, *words = TABLES[table]["bad"][case]
    *others, last = changes.items()
    said = complaint(changed(table, dict(others)), *last, tmp_path)
    assert said.startswith(place), said
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("table", "case"), [*((table, "") for table in TABLES), *cases("fine")]
)
def test_the_good_ones_are_good(table: str, case: str) -> None:
    changes = TABLES[table]["fine"][case] if case else {}
    scenario = loads_any(changed(table, changes), "good.yaml")
    assert scenario.name == "study"
    assert type(scenario).model_validate(scenario.model_dump(mode="json")) == scenario
