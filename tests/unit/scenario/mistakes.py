"""A scenario with one mistake in it, and the one line that is said of it."""

import re
from pathlib import Path

import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.scenario.reading import read


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
        read(path)
    lines = str(caught.value).split("\n")
    assert all(line.isprintable() for line in lines)
    assert all(line.startswith(f"{path}:") for line in lines), lines
    said = lines[0].removeprefix(f"{path}:")
    assert len(said) < 550  # all metrics, where one of them is asked for
    assert not re.search(r"constrained|function-|tagged-union|Value error", said)
    return said
