"""A few cases of every attack; all of them: `python -m tests.attacks`."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attacks import damages, disks, fuzzing, interruptions, load, settings
from tests.attacks.cases import REFUSED, STOOD, Case

FEW: dict[str, Callable[[Path], Iterator[Case]]] = {
    "interruptions": lambda folder: interruptions.studies(folder, 6, 1),
    "writers": lambda folder: interruptions.writers(folder, 4, 1),
    "disks": disks.attacks,
    "damage": damages.attacks,
    "reading": lambda folder: fuzzing.reading(folder, 400, 1),
    "running": lambda folder: fuzzing.running(folder, 6, 1),
    "settings": settings.attacks,
    "worlds": lambda folder: load.worlds(folder, (5_000,)),
    "studies": lambda folder: load.studies(folder, 30, 2_000),
}


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="signals and mounts of Unix")
@pytest.mark.filterwarnings("default::stalesim.simulator.files.study.StudyWarning")
@pytest.mark.parametrize("area", FEW)
def test_attacks_are_survived_or_refused_in_one_line(area: str, tmp_path: Path) -> None:
    cases = list(FEW[area](tmp_path))
    bad = [case for case in cases if case.outcome not in (STOOD, REFUSED)]
    assert not bad, bad
    assert len(cases) >= 1
