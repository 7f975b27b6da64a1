"""Studies that are there already: the same scenario, files and program, or not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.config.errors import StudyError
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.studies.existing import is_there
from stalesim.simulator.studies.running import simulate
from stalesim.simulator.trace import manifest

RNG = np.random.default_rng(5)


def scenario(path: Path, **changes: Any) -> Any:
    tree: dict[str, Any] = {
        "name": "there",
        "seed": 3,
        "replicates": 2,
        "problem": {
            "data": {"kind": "npz", "path": str(path)},
            "partition": {"kind": "iid", "clients": 2},
        },
        "clients": {"compute": {"law": "constant", "value": 1}},
        "protocol": {"kind": "asynchronous"},
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 4},
        "stop": {"commits": 4},
        "evaluate": {"every": {"commits": 2}},
    }
    return validated(tree | changes)


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
