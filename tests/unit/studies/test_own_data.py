"""Studies of data of a user's own: tables, saved sets, and what rows belong to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from simulator import studies
from simulator.config.errors import ScenarioError, StudyError
from simulator.trace import load
from tests.unit.problems.data.saved_set import save_parts

WRITERS = np.array(["ann", "bob", "cem", "eve"])[[0, 0, 0, 0, 1, 2, 0, 0, 3, 0]]


def tree(data: dict[str, Any], **partition: Any) -> dict[str, Any]:
    return {
        "name": "small",
        "problem": {
            "data": {"groups": "writer", "label": "died", **data},
            "partition": partition or {"kind": "natural", "clients": 4},
        },
        "clients": {"compute": {"law": "expon"}},
        "protocol": {"kind": "asynchronous"},
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 2},
        "stop": {"commits": 20},
        "evaluate": {"every": {"commits": 10}},
        "engine": {"chunk": 64},
    }


def frame(seed: int) -> pd.DataFrame:
    x = np.random.default_rng(seed).normal(size=(100, 3))
    table = pd.DataFrame(x, columns=[*"abc"])
    return table.assign(died=x[:, 0] > 0, writer=np.tile(WRITERS, 10))


def write_csv(path: Path, seed: int) -> None:
    frame(seed).to_csv(path, index=False)


def write_parquet(path: Path, seed: int) -> None:
    frame(seed).to_parquet(path, index=False)


def write_saved(path: Path, seed: int) -> None:
    cells = pa.Table.from_pandas(frame(seed))
    save_parts(path, train=cells[:80], test=cells[80:])


WAYS: dict[str, Callable[[Path, int], None]] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "huggingface": write_saved,
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("STALESIM_DATA", str(tmp_path / "data"))
    return folder


@pytest.mark.parametrize("kind", WAYS)
def test_a_study_goes_on_with_the_same_table_alone(kind: str, here: Path) -> None:
    write = WAYS[kind]
    write(here / "mine", 1)
    scenario = tree({"kind": kind, "path": "mine"})
    first = studies.simulate(scenario, "s").manifest
    assert first["inputs"]["mine"]["at"] == str(here / "mine")
    write(here / "mine", 2)
    with pytest.raises(StudyError, match=f"but {here / 'mine'} has changed"):
        studies.simulate(scenario | {"replicates": 2}, "s")
    write(here / "other", 1)
    scenario = tree({"kind": kind, "path": "other"})
    again = studies.simulate(scenario | {"replicates": 2}, "s")
    assert again.manifest["runs"][0]["content"] == first["runs"][0]["content"]


def test_what_lies_in_a_saved_sets_folder_besides_is_none_of_it(here: Path) -> None:
    write_saved(here / "mine", 1)
    scenario = tree({"kind": "huggingface", "path": "mine"})
    studies.simulate(scenario, "s")
    (here / "mine" / "train" / "cache-17.arrow").write_bytes(b"of the library")
    assert studies.simulate(scenario | {"replicates": 2}, "s").complete


def test_clients_are_called_as_the_data_call_them(here: Path) -> None:
    write_parquet(here / "mine", 1)
    data = {"kind": "parquet", "path": "mine"}
    clients = studies.simulate(tree(data), "s").table("clients")
    assert [*clients["client_label"]] == [f"writer {w}" for w in np.unique(WRITERS)]
    held = studies.simulate(tree(data, kind="natural", clients=2), "t").table("clients")
    assert [*held["client_label"]] == ["writer ann", "writer bob, cem, eve"]
    assert held["num_samples"].sum() == clients["num_samples"].sum() == 80
    mixed = studies.simulate(tree(data, kind="iid", clients=2), "u").table("clients")
    assert "client_label" not in mixed.dropna(axis="columns")


def test_a_group_of_few_rows_is_one_line(here: Path) -> None:
    write_parquet(here / "mine", 1)
    scenario = tree({"kind": "parquet", "path": "mine"})
    scenario["algorithm"]["batch"] = 64
    with pytest.raises(
        ScenarioError, match=r"at most the .* samples of a client, got 64"
    ):
        studies.simulate(scenario, "s")


def test_arrays_of_this_program_have_groups(here: Path) -> None:
    table = frame(3)
    arrays = {
        "x": table[[*"abc"]].to_numpy(),
        "y": table["died"].to_numpy(),
        "group": table["writer"].to_numpy(str),
    }
    scenario = tree({"kind": "csv", "path": "none"})
    scenario["problem"]["data"] = {"kind": "digits"}
    studies.simulate(scenario, "s", data=arrays)
    labels = load("s").table("clients")["client_label"]
    assert [*labels] == [f"group {w}" for w in np.unique(WRITERS)]


MAKE = """
import numpy as np


def make(seed):
    draw = np.random.default_rng([{key}, seed])
    x = {{"age": draw.normal(size=60), "body": draw.normal(size=(60, 2))}}
    x = np.column_stack([*x.values()])
    return {{"x": x, "y": x[:, 0] > 0, "group": draw.integers(4, size=60)}}
"""


@pytest.fixture
def write_module(here: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes a module of a new name, which is forgotten after the test."""

    def write(text: str) -> str:
        name = f"made_{abs(hash((text, str(here)))):x}"
        (here / f"{name}.py").write_text(text)
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return write
