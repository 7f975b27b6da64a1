"""Every scenario that ships can be read, with all of its variants and sweep points."""

from pathlib import Path

import pytest

from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.scenario.study import expand

FOLDER = Path(__file__).parents[3] / "scenarios"
FILES = sorted(FOLDER.rglob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_can_be_read(path: Path) -> None:
    scenario = read_any(path)
    runs = expand(scenario)
    assert len(runs) >= scenario.replicates
    assert {run.variant for run in runs} == set(scenario.variants or ["base"])
