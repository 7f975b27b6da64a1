"""Studies that are replaced, and folders that are not."""

from pathlib import Path

import numpy as np
import pytest

from stalesim.simulator.config.errors import StudyError
from stalesim.simulator.studies import overwriting
from tests.support import write_study


def write(folder: Path) -> None:
    run = {"run": 0, "label": "base", "replicate": 0, "stop": "time"}
    told = {"name": "small", "runs": [run]}
    write_study(folder, told, {"commits": {"run": np.zeros(3, np.int32)}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "study"


def test_a_study_and_what_was_made_of_it_are_removed(folder: Path) -> None:
    write(folder)
    for name in ("figures", "attack", "export-csv"):
        (folder / name).mkdir()
        (folder / name / "a.txt").write_text("a")
    for name in ("report.html", "capsule.zip"):
        (folder / name).write_text("")
    (folder / "manifest.json.partial").write_text("")
    overwriting.clear(folder)
    assert not folder.exists() or [p.name for p in folder.iterdir()] == [".lock"]


def test_a_folder_with_anything_else_stays_as_it_is(folder: Path) -> None:
    write(folder)
    (folder / "thesis.tex").write_text("years")
    before = sorted(path.name for path in folder.rglob("*"))
    with pytest.raises(StudyError, match=r"holds 'thesis\.tex', which is not of a"):
        overwriting.clear(folder)
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_a_folder_without_a_study_stays_as_it_is(folder: Path) -> None:
    folder.mkdir()
    overwriting.clear(folder)
    (folder / "figures").mkdir()
    with pytest.raises(StudyError, match="must hold a study and nothing else"):
        overwriting.clear(folder)
    assert (folder / "figures").is_dir()


def test_what_a_link_points_to_stays(folder: Path, tmp_path: Path) -> None:
    write(folder)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "a.txt").write_text("a")
    (folder / "figures").symlink_to(mine, target_is_directory=True)
    overwriting.clear(folder)
    assert (mine / "a.txt").read_text() == "a"
    assert not (folder / "figures").is_symlink()
