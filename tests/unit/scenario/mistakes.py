"""Tables of scenarios and their mistakes, and the one line that is said of each.

The tables are in `refusals/`, here and in the tests of extras, or there in a file
`refusals.yaml`: a good scenario, and by name changes of it, each what is replaced by
what. Of each that is `bad`, line and key of the message follow, and what else it says;
of what is `unfit`, as only the data can say, how the message begins. Those that are
`fine` are as good.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stalesim.simulator.parts import metrics
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.reading import read_any

TESTS = Path(__file__).parents[2]
TABLES: dict[str, Any] = {
    f"{path.parts[-3]} {path.stem}": {
        "bad": {},
        "unfit": {},
        "fine": {},
        **yaml.safe_load(path.read_text("utf-8")),
    }
    for folder in ("unit/scenario", "extras/*")
    for path in sorted(TESTS.glob(f"{folder}/refusals/*.yaml"))
}


def cases(section: str) -> list[tuple[str, str]]:
    """Returns the cases of a section of all tables, each with its table's name."""
    return [(table, case) for table in TABLES for case in TABLES[table][section]]


def changed(table: str, changes: dict[str, str]) -> str:
    """Returns the good scenario of a table with some changes."""
    text = TABLES[table]["good"]
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def complaint(good: str, old: str, new: str, folder: Path) -> str:
    """Returns what reading says of a good scenario with a part replaced by a bad one.

    It is one short line in the user's words, which begins with the name of the file;
    returned is what comes after that: the number of the line, the key and the rest.
    Of what follows from the mistake there may be more lines.
    """
    assert old in good
    path = folder / "bad.yaml"
    path.write_text(good.replace(old, new), encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        read_any(path)
    lines = str(caught.value).split("\n")
    assert all(line.isprintable() for line in lines)
    assert all(line.startswith(f"{path}:") for line in lines), lines
    said = lines[0].removeprefix(f"{path}:")
    longest = ", ".join(metrics.names())  # all of them, where one is asked for
    assert len(said) < 240 + len(longest), said
    assert not re.search(r"constrained|function-|tagged-union|Value error", said)
    return said
