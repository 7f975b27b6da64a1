"""Every mistake ends in one line with the file, the line, what and the remedy.

The tables are in `refusals/`, and `refusals.yaml` of extras: a good scenario, and by
name each mistake in it: what is replaced by what, line and key of the message, and what
else it says.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from stalesim.simulator.scenario.reading import loads
from tests.unit.scenario.mistakes import complaint

TESTS = Path(__file__).parents[2]
PATHS = [
    *sorted(TESTS.glob("unit/scenario/refusals/*.yaml")),
    *sorted(TESTS.glob("extras/*/refusals.yaml")),
]
TABLES: dict[str, Any] = {
    str(path.relative_to(TESTS)): yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in PATHS
}
CASES = [(table, case) for table in TABLES for case in TABLES[table]["bad"]]


@pytest.mark.parametrize(("table", "case"), CASES)
def test_a_mistake_is_one_line(table: str, case: str, tmp_path: Path) -> None:
    changes, place, *words = TABLES[table]["bad"][case]
    text = TABLES[table]["good"]
    *others, last = changes.items()
    for old, new in others:
        assert old in text
        text = text.replace(old, new)
    said = complaint(text, *last, tmp_path)
    assert said.startswith(place), said
    for word in words:
        assert word in said


@pytest.mark.parametrize("table", TABLES)
def test_the_good_scenario_is_good(table: str) -> None:
    assert loads(TABLES[table]["good"], table).name == "study"
