"""Studies of data of a user's own: tables, saved sets, and what rows belong to."""

import os
import re
import sys
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from pydantic import ValidationError

from stalesim.simulator import studies
from stalesim.simulator.catalogue.data.own_arrays import Generated
from stalesim.simulator.engine.of_run import set_up
from stalesim.simulator.files.study import load
from stalesim.simulator.parts.errors import ScenarioError, StudyError, UserError
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.study import expand
from tests.unit.studies.small import SMALL

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "own-data.md"
WRITERS = np.array(["ann", "bob", "cem", "eve"])[[0, 0, 0, 0, 1, 2, 0, 0, 3, 0]]


def tree(data: dict[str, Any], **partition: Any) -> dict[str, Any]:
    return SMALL | {
        "problem": {
            "data": {"groups": "writer", "label": "died", **data},
            "partition": partition or {"kind": "natural", "clients": 4},
        },
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 2},
        "stop": {"commits": 20},
        "evaluate": {"every": {"commits": 10}},
        "engine": {"chunk": 64},
    }


def frame(seed: int) -> pd.DataFrame:
    x = np.random.default_rng(seed).normal(size=(100, 3))
    table = pd.DataFrame(x, columns=[*"abc"])
    return table.assign(died=x[:, 0] > 0, writer=np.tile(WRITERS, 10))


def write_parquet(path: Path, seed: int) -> None:
    frame(seed).to_parquet(path, index=False)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("STALESIM_DATA", str(tmp_path / "data"))
    return folder


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


def test_a_group_of_few_rows_takes_all_that_it_has(here: Path) -> None:
    write_parquet(here / "mine", 1)
    scenario = tree({"kind": "parquet", "path": "mine"})
    scenario["algorithm"]["batch"] = 64
    study = studies.simulate(scenario, "s")
    assert study.table("evaluations")["test_accuracy"].notna().all()


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


NUMBERS = count()
MAKE = """
import numpy as np
from pathlib import Path


def make(seed):
    draw = np.random.default_rng([int(Path("key").read_text()), seed])
    x = draw.normal(size=(60, 3))
    return {"x": x, "y": x[:, 0] > 0, "group": draw.integers(4, size=60)}


def several(seed):
    return make(seed) | {"x": {"a": [[1.0]] * 60, "b": np.arange(60)}}


def at_random(seed):
    return make(np.random.default_rng().integers(2**32))


def fails(seed):
    raise KeyError(seed)


def nothing(seed):
    return [seed]


def halves(seed):
    return {"x": make(seed)["x"]}


def ragged(seed):
    return {"x": [[1], [2, 3]], "y": [0, 1]}


def of_dates(seed):
    return make(seed) | {0: np.zeros(60, "M8[s]"), "y": np.zeros(60, "M8[s]")}


def of_objects(seed):
    return make(seed) | {"y": [None] * 60}


number = 7
"""


@pytest.fixture
def module(here: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a module with functions that make data; no other test has it."""
    monkeypatch.setattr(sys, "path", [str(here), *sys.path])
    name = f"made_{os.getpid()}_{next(NUMBERS)}"
    (here / f"{name}.py").write_text(MAKE)
    (here / "key").write_text("5")
    return name


def generated(build: str, **options: Any) -> dict[str, Any]:
    scenario = tree({}, kind="natural", clients=4)
    scenario["problem"]["data"] = {"kind": "python", "build": build, **options}
    return scenario


def drawn(seed: int, key: int = 5) -> np.ndarray:
    return np.random.default_rng([key, seed]).normal(size=(60, 3))


def test_a_functions_arrays_are_those_of_the_seed(module: str) -> None:
    for seed in (0, 3):
        config = Generated(build=f"{module}:make", split_seed=seed, scale="raw")
        data = config.make()
        rows = np.concatenate([data.x_train, data.x_test])
        expected = drawn(seed).astype(np.float32)
        np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(expected, axis=0))
        assert (data.name, data.num_classes) == ("make", 2)
        assert [one.column for one in data.groupings] == ["group"]
    several = Generated(build=f"{module}:several").make()
    assert [(of.name, of.shape) for of in several.fields] == [("a", (1,)), ("b", ())]


def test_every_replicate_has_a_task_of_its_own(module: str) -> None:
    scenario = generated(f"{module}:make", split_seed="replicate")
    study = studies.simulate(scenario | {"replicates": 2}, "s")
    told = study.manifest["inputs"]
    assert [name for name in told if name.startswith("what")] == [
        f"what {module}:make({run['seed']}) returns by its argument alone"
        for run in study.manifest["runs"]
    ]
    assert len({each["sha256"] for each in told.values()}) == len(told)


def test_a_function_is_known_by_what_it_returns(module: str, here: Path) -> None:
    scenario = generated(f"{module}:make")
    studies.simulate(scenario, "s")
    (here / "key").write_text("6")
    with pytest.raises(
        StudyError, match=rf"what {module}:make\(0\) returns .* has changed"
    ):
        studies.simulate(scenario | {"replicates": 2}, "s")
    (here / "key").write_text("5")
    assert studies.simulate(scenario | {"replicates": 2}, "s").complete


def test_a_function_that_draws_anew_is_one_line(module: str) -> None:
    with pytest.raises(UserError, match=r"at_random\(0\) .* alone must stay as it is"):
        studies.simulate(generated(f"{module}:at_random"), "s")


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("gone", "must name an object of the module .*, got 'gone'"),
        ("fails", "problem.data.build must .* KeyError: 0 .*from '.*fails'"),
        ("number", "problem.data.build must .* TypeError"),
        ("nothing", "must return arrays by name, got list from .*; return"),
        ("halves", r"halves\(0\) must hold the array y, got \['x'\]"),
        ("ragged", "problem.data.build must .* ValueError"),
        ("of_dates", "y of .* must hold real numbers, got datetime64"),
        ("of_objects", r"y of .*of_objects\(0\) must hold real numbers, got object"),
    ],
)
def test_functions_that_make_no_data(function: str, says: str, module: str) -> None:
    build = f"{module}:{function}"
    for make in (
        Generated(build=build).make,
        lambda: studies.simulate(generated(build)),
    ):
        with pytest.raises(UserError, match=says) as error:
            make()
        assert "\n" not in str(error.value)


def test_the_function_of_the_page_is_learned_by_regression(here: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n# mine.py\n(.*?)^```$", text, re.DOTALL | re.M)
    (changes,) = re.findall(
        r"^```yaml\n([^`]*kind: python.*?)^```$", text, re.DOTALL | re.M
    )
    (here / "mine.py").write_text(code)
    scenario = tree({}) | yaml.safe_load(changes) | {"replicates": 2}
    scenario["stop"] = {"commits": 400}
    study = studies.simulate(scenario, "s")
    losses = study.table("evaluations").groupby("run")["test_loss"]
    # Targets are linear in the features: the loss goes to zero.
    assert (losses.last() < 0.002 * losses.first()).all()
    assert losses.first().nunique() == 2


@pytest.mark.parametrize(("shape", "fits"), [((3, 16, 16), True), ((16, 16, 3), False)])
def test_pictures_in_planes_are_for_models_of_images(
    here: Path, shape: tuple[int, ...], *, fits: bool
) -> None:
    pixels = np.random.default_rng(0).integers(256, size=(40, *shape), dtype=np.uint8)
    np.savez(here / "d.npz", x=pixels, y=np.arange(40) % 2)
    scenario = tree({}, kind="iid", clients=4)
    scenario["problem"]["data"] = {"kind": "npz", "path": str(here / "d.npz")}
    scenario["problem"]["model"] = {"kind": "cnn"}
    (run,) = expand(validated(scenario))
    if fits:
        assert set_up(run).shares.data.fields[0].shape == shape
        return
    with pytest.raises(ScenarioError, match="or save rows of numbers"):
        set_up(run)


def test_data_that_were_made_before_a_study_are_made_anew(
    module: str, here: Path
) -> None:
    scenario = generated(f"{module}:make")
    assert Generated(build=f"{module}:make").make().num_classes == 2
    (here / "key").write_text("6")
    assert studies.simulate(scenario).complete


@pytest.mark.parametrize("build", ["make", "no such:make", "mine:", ":make"])
def test_names_of_no_function(build: str) -> None:
    with pytest.raises(ValidationError, match="build"):
        Generated(build=build)
