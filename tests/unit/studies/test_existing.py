"""Studies that are there already: recognised, told from others, or removed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.files.study import manifest
from stalesim.simulator.parts.errors import StudyError
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.studies.existing import clear, is_there
from stalesim.simulator.studies.planning import difference
from stalesim.simulator.studies.running import simulate
from tests.support import write_study
from tests.unit.studies.small import SMALL

RNG = np.random.default_rng(5)


def scenario(path: Path, **changes: Any) -> Any:
    problem = SMALL["problem"] | {"data": {"kind": "npz", "path": str(path)}}
    return validated(SMALL | {"replicates": 2, "problem": problem} | changes)


def write(path: Path) -> Path:
    x = RNG.normal(size=(40, 3)).astype(np.float32)
    np.savez(path, x=x, y=np.arange(40) % 2)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "data.npz")


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    simulate(scenario(data), tmp_path / "study")
    return tmp_path / "study"


def test_a_study_is_there_until_something_of_it_differs(
    data: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = scenario(data)
    assert is_there(mine, folder)
    for other in ({"seed": 4}, {"replicates": 3}, {"question": "Why?"}):
        assert not is_there(scenario(data, **other), folder), other
    with monkeypatch.context() as patch:
        patch.setattr(manifest, "code", lambda: "0" * 64)
        assert not is_there(mine, folder)
        more = scenario(data, replicates=3)
        with pytest.raises(StudyError, match="but the code of simulator/ has changed"):
            simulate(more, folder)
        assert simulate(mine, folder).complete, "nothing is left to be run"
    assert is_there(mine, folder)
    write(data)
    assert not is_there(mine, folder), "other numbers in the file that it reads"


def test_folders_without_a_study_and_damaged_ones_hold_none(
    data: Path, folder: Path, tmp_path: Path
) -> None:
    assert not is_there(scenario(data), tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    assert not is_there(scenario(data), tmp_path / "empty")
    path = folder / "manifest.json"
    path.write_text(path.read_text(encoding="utf-8")[:-200], encoding="utf-8")
    assert not is_there(scenario(data), folder)


def written(folder: Path) -> Path:
    run = {"run": 0, "label": "base", "replicate": 0, "stop": "time"}
    told = {"name": "small", "runs": [run]}
    write_study(folder, told, {"commits": {"run": np.zeros(3, np.int32)}})
    return folder


def test_a_study_and_what_was_made_of_it_are_removed(tmp_path: Path) -> None:
    folder = written(tmp_path / "study")
    for name in ("figures", "attack", "export-csv"):
        (folder / name).mkdir()
        (folder / name / "a.txt").write_text("a")
    for name in ("report.html", "capsule.zip"):
        (folder / name).write_text("")
    (folder / "manifest.json.partial").write_text("")
    clear(folder)
    assert not folder.exists() or [p.name for p in folder.iterdir()] == [".lock"]


def test_a_folder_with_anything_else_stays_as_it_is(tmp_path: Path) -> None:
    folder = written(tmp_path / "study")
    (folder / "thesis.tex").write_text("years")
    before = sorted(path.name for path in folder.rglob("*"))
    with pytest.raises(StudyError, match=r"holds 'thesis\.tex', which is not of a"):
        clear(folder)
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_a_folder_without_a_study_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    clear(folder)
    (folder / "figures").mkdir()
    with pytest.raises(StudyError, match="must hold a study and nothing else"):
        clear(folder)
    assert (folder / "figures").is_dir()


def test_what_a_link_points_to_stays(tmp_path: Path) -> None:
    folder = written(tmp_path / "study")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "a.txt").write_text("a")
    (folder / "figures").symlink_to(mine, target_is_directory=True)
    clear(folder)
    assert (mine / "a.txt").read_text() == "a"
    assert not (folder / "figures").is_symlink()


@pytest.mark.parametrize(
    ("then", "now", "words"),
    [
        ({"seed": 1, "stop": {"time": 2.0}}, {"seed": 1, "stop": {"time": 2.0}}, ""),
        ({"a": {"b": 8}}, {"a": {"b": 9}}, "a.b was 8 and is 9"),
        (
            {"a": {"x": 1, "kind": "sgd", "y": 2}},
            {"a": {"kind": "vafl", "z": 2}},
            "a.kind was sgd and is vafl",
        ),
        ({"a": {"b": None}}, {"a": {"b": [1]}}, "a.b is [1] and was not set"),
        ({"a": {"b": [1]}}, {"a": {}}, "a.b was [1] and is not set"),
        ({"name": "one", "b": 1}, {"name": "two", "b": 2}, "b was 1 and is 2"),
    ],
)
def test_the_first_entry_that_differs_is_told(
    then: dict, now: dict, words: str
) -> None:
    assert difference(then, now, leaving=("name",)) == words
