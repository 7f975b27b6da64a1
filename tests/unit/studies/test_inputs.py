"""What runs read belongs to what they are: files, recordings, data sets, modules."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

from stalesim.simulator import studies
from stalesim.simulator.catalogue.data import mnist
from stalesim.simulator.engine.of_run import set_up
from stalesim.simulator.files import inputs
from stalesim.simulator.files.reading import files
from stalesim.simulator.files.study import load, write_manifest
from stalesim.simulator.files.study.manifest import read_manifest
from stalesim.simulator.parts import functions, own_code, plugins
from stalesim.simulator.parts.base import (
    Config,
    marks,
    named_files,
    parts_within,
    unmarked,
)
from stalesim.simulator.parts.catalogue import BASES
from stalesim.simulator.parts.catalogue import own as own_parts
from stalesim.simulator.parts.errors import DataError, ScenarioError, StudyError
from stalesim.simulator.parts.own_code import Content
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies import origins, running, saved, study_folder
from tests.commands import stalesim
from tests.unit.studies.small import SMALL

TREE: dict[str, Any] = SMALL | {
    "problem": {
        "data": {"kind": "npz", "path": "d.npz"},
        "partition": {"kind": "iid", "clients": 4},
    },
    "clients": {"compute": {"law": "empirical", "path": "e.csv", "column": "t"}},
    "stop": {"commits": 20},
    "evaluate": {"every": {"commits": 10}},
    "engine": {"chunk": 64},
}
WORLD = {
    "name": "world",
    "clients": {"number": 4, "compute": {"law": "expon"}},
    "protocol": {"kind": "asynchronous"},
    "stop": {"commits": 30},
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, in which there are data and measured durations."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("STALESIM_DATA", str(tmp_path / "data"))
    write_data(folder / "d.npz")
    write_times(folder / "e.csv", 1)
    return folder


@pytest.fixture
def away(tmp_path: Path) -> Path:
    """Another folder."""
    folder = tmp_path / "away"
    folder.mkdir()
    return folder


def write_data(path: Path, seed: int = 1) -> None:
    x = np.random.default_rng(seed).normal(size=(100, 5))
    np.savez(path, x=x, y=np.arange(100) % 2)


def write_times(path: Path, longest: int) -> None:
    path.write_text(f"t\n1\n{longest}\n")


def write_intervals(path: Path, end: int) -> None:
    rows = [{"client": c, "start": 0.0, "end": end} for c in range(1, 5)]
    pd.DataFrame(rows).to_parquet(path)


def changed(tree: dict[str, Any], **entries: Any) -> dict[str, Any]:
    """Returns a scenario with some entries, of dotted keys, replaced."""
    tree = json.loads(json.dumps(tree))
    for key, value in entries.items():
        *above, last = key.split("__")
        inner = tree
        for name in above:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return tree


TRACED = {"kind": "trace", "path": "a.parquet"}
MEASURED = {"law": "empirical", "path": "more.csv", "column": "t"}
MIXED = {"law": "mixture", "of": [{"law": "expon"}, MEASURED], "weights": [1, 1]}
FILES: dict[str, tuple[dict[str, Any], Callable[[Path, int], None]]] = {
    "d.npz": (TREE, write_data),
    "e.csv": (TREE, write_times),
    "a.parquet": (changed(TREE, clients__availability=TRACED), write_intervals),
    "more.csv": (changed(TREE, server__service=MIXED), write_times),
}
"""Files, scenarios that read them, and what writes them."""


@pytest.mark.parametrize("name", FILES)
def test_a_study_goes_on_with_the_same_files_alone(name: str, here: Path) -> None:
    tree, write = FILES[name]
    write(here / name, 5)
    study = studies.simulate(tree, "s")
    before = {p: p.read_bytes() for p in Path("s").rglob("*") if p.is_file()}
    told = study.manifest["inputs"][name]
    assert told["at"] == str(here / name)
    assert told["bytes"] == (here / name).stat().st_size
    write(here / name, 7)
    for act in (
        lambda: studies.resume("s"),
        lambda: studies.simulate(tree, "s"),
        lambda: studies.simulate(tree | {"replicates": 2}, "s"),
    ):
        with pytest.raises(StudyError, match=f"but {here / name} has changed") as error:
            act()
        assert "\n" not in str(error.value)
    assert {p: p.read_bytes() for p in before} == before
    write(here / name, 5)
    assert studies.simulate(tree | {"replicates": 2}, "s").complete


def test_content_counts_not_the_name(here: Path, tmp_path: Path) -> None:
    study = studies.simulate(TREE, "s")
    first = study.manifest["runs"][0]["content"]
    (here / "d.npz").rename(tmp_path / "renamed.npz")
    tree = changed(TREE, problem__data__path="../renamed.npz", replicates=2)
    extended = studies.simulate(tree, "s")
    assert extended.manifest["runs"][0]["content"] == first
    assert {*extended.manifest} >= {"commit", "dirty"}
    assert {*extended.manifest["continued"][0]} >= {"commit", "dirty", "command"}
    assert {*extended.manifest["inputs"]} == {"d.npz", "../renamed.npz", "e.csv"}


def test_a_run_without_files_is_what_it_was(here: Path) -> None:
    tree = changed(TREE, problem__data={"kind": "digits"}, clients=WORLD["clients"])
    (run,) = expand(validated(tree))
    assert inputs.identified(run.scenario) == run.scenario.model_dump(mode="json")


def test_relative_paths_start_from_where_the_study_did(
    here: Path, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studies.simulate(TREE, "s")
    manifest = read_manifest(Path("s"))
    manifest["runs"][0]["stop"] = "failed"
    write_manifest(Path("s"), manifest)
    write_times(away / "e.csv", 999)
    monkeypatch.chdir(away)
    resumed = studies.resume(here / "s")
    assert resumed.manifest["runs"][0]["stop"] == "commits"
    assert resumed.manifest["working_folder"] == str(here)
    write_data(away / "d.npz")
    with pytest.raises(StudyError, match=r"away/e\.csv has changed"):
        studies.simulate(TREE, here / "s")


def test_other_processes_read_what_this_one_found(
    away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = changed(TREE, replicates=2, engine__mode="compiled")
    studies.simulate(tree, "s", jobs=2)  # its processes stay, and stay there
    write_data(away / "d.npz", 2)
    write_times(away / "e.csv", 3)
    monkeypatch.chdir(away)
    monkeypatch.setenv("STALESIM_DATA", str(away))
    shared = studies.simulate(tree, "s", jobs=2)
    alone = studies.simulate(tree, "t")
    one, other = (study.table("commits")["loss"] for study in (shared, alone))
    assert one.tolist() == other.tolist()


def test_a_study_whose_working_folder_has_moved_goes_on(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studies.simulate(TREE, "s")
    monkeypatch.chdir(tmp_path)
    here.rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path / "moved")
    assert studies.resume("s").complete


def test_a_study_with_parts_of_ones_own_says_what_to_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = TREE | {"clients": {"compute": {"law": "mine"}}}
    manifest: dict[str, Any] = {"scenario": tree, "modules": {"mine": {}}}
    monkeypatch.setattr(running, "load", lambda _: SimpleNamespace(manifest=manifest))
    with pytest.raises(StudyError, match="stalesim --plugin mine resume s "):
        studies.resume("s")
    manifest["modules"]["mine"] = {"file": "/my/mine.py"}
    with pytest.raises(StudyError, match=r"stalesim --plugin /my/mine\.py resume s "):
        running.scenario_of("s")
    del manifest["modules"]
    with pytest.raises(ScenarioError, match="got 'mine'"):
        running.scenario_of("s")


def test_given_arrays_move_with_their_study(here: Path, tmp_path: Path) -> None:
    with np.load("d.npz") as arrays:
        data = dict(arrays)
    studies.simulate(TREE, "s", data=data)
    Path("s").rename(tmp_path / "moved")
    assert studies.resume(tmp_path / "moved").complete
    again = studies.simulate(TREE | {"replicates": 2}, tmp_path / "moved", data=data)
    assert len(again.manifest["runs"]) == 2
    write_data(tmp_path / "moved" / "data.npz", 2)
    with pytest.raises(StudyError, match=r"data\.npz"):
        studies.resume(tmp_path / "moved")


def test_given_arrays_that_pack_tight_can_be_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "ALWAYS", 1000)
    data = {"x": np.zeros((20_000, 5)), "y": np.arange(20_000) // 10_000}
    assert studies.simulate(TREE, "s", data=data).complete
    assert Path("s/data.npz").stat().st_size > 900_000, "it was packed to 3,000 bytes"


def record(seed: int) -> None:
    saved.record(WorldScenario.model_validate(WORLD | {"seed": seed}), "recorded")


def test_a_recorded_timeline_counts_by_what_it_holds(here: Path) -> None:
    tree = changed(
        TREE,
        timeline={"replay": "recorded"},
        clients=None,
        problem__data={"kind": "digits"},
    )
    record(1)
    studies.simulate(tree, "s")
    shutil.rmtree("recorded")
    record(1)  # the same timeline, later
    assert studies.resume("s").complete
    shutil.rmtree("recorded")
    record(2)
    with pytest.raises(StudyError, match=f"{here}/recorded has changed"):
        studies.simulate(tree | {"replicates": 2}, "s")


@pytest.fixture
def write_mnist(tmp_path: Path) -> Callable[[int], Path]:
    def write(first: int) -> Path:
        folder = tmp_path / "data" / "mnist"
        folder.mkdir(parents=True, exist_ok=True)
        for half, size in (("train", 40), ("t10k", 10)):
            pixels = (np.arange(size * 4) + first) % 251
            header = np.array([0x803, size, 2, 2], ">u4").tobytes()
            images = folder / f"{half}-images-idx3-ubyte"
            images.write_bytes(header + pixels.astype(np.uint8).tobytes())
            header = np.array([0x801, size], ">u4").tobytes()
            digits = (np.arange(size) % 10).astype(np.uint8).tobytes()
            (folder / f"{half}-labels-idx1-ubyte").write_bytes(header + digits)
        return folder

    return write


def test_what_a_data_set_finds_counts_as_well(
    write_mnist: Callable[[int], Path],
) -> None:
    tree = changed(TREE, problem__data={"kind": "mnist"})
    folder = write_mnist(0)
    study = studies.simulate(tree, "s")
    name = "$STALESIM_DATA/mnist/train-images-idx3-ubyte"
    assert study.manifest["inputs"][name]["at"] == str(folder / Path(name).name)
    assert study.manifest["runs"][0]["dataset"] == "mnist (other copy)"
    write_mnist(1)
    with pytest.raises(StudyError, match=f"{folder}/.*-images-idx3-ubyte has changed"):
        studies.resume("s")
    write_mnist(0)
    images = folder / Path(name).name
    images.rename(folder / "elsewhere")
    (folder / "elsewhere").write_bytes(b"")
    with pytest.raises(StudyError, match="is not found now; put it there, or set STA"):
        studies.simulate(tree | {"replicates": 2}, "s")
    with pytest.raises(StudyError, match="is not found now"):
        studies.resume("s")


def test_files_that_appear_are_told(
    write_mnist: Callable[[int], Path],
) -> None:
    tree = changed(TREE, problem__data={"kind": "mnist", "limit": 100})
    studies.simulate(tree, "s")
    folder = write_mnist(0)
    with pytest.raises(StudyError, match=f"{folder}/.* is found now and was not when"):
        studies.simulate(tree | {"replicates": 2}, "s")
    bundled = changed(tree, problem__data__source="bundled", replicates=2)
    with pytest.raises(StudyError, match="source was auto and is bundled"):
        studies.simulate(bundled, "s")  # as before: it says something else


def test_a_second_study_in_one_process_reads_what_is_there_then(here: Path) -> None:
    first = studies.simulate(TREE, "s")
    write_data(here / "d.npz", 2)
    second = studies.simulate(TREE, "t")
    write_data(here / "d.npz", 1)
    third = studies.simulate(TREE, "u")
    losses = [s.table("commits")["loss"].tolist() for s in (first, second, third)]
    assert losses[0] == losses[2] != losses[1]


@pytest.mark.parametrize(("name", "jobs"), [("e.csv", 1), ("e.csv", 2), ("d.npz", 2)])
def test_a_file_that_changes_under_a_study_fails_its_runs(
    name: str, jobs: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = changed(TREE, replicates=2, engine__mode="compiled")
    _, write = FILES[name]
    write(here / name, 5)
    begin = study_folder.StudyFolder.begin

    def changing(*args: Any, **options: Any) -> None:
        begin(*args, **options)
        write(here / name, 7)

    monkeypatch.setattr(study_folder.StudyFolder, "begin", changing)
    with pytest.raises(StudyError, match=f"{here / name} must stay as it is while"):
        studies.simulate(tree, "s", jobs=jobs)
    monkeypatch.undo()
    monkeypatch.chdir(here)
    reasons = [run["stop_reason"] for run in load("s").manifest["runs"]]
    assert len(reasons) == 2
    assert all("must stay as it is" in r and "\n" not in r for r in reasons)
    write(here / name, 5)
    assert studies.resume("s", jobs=jobs).complete


def test_a_loader_says_what_it_reads(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "mine").write_bytes(b"mine")
    monkeypatch.setattr(mnist, "bundled", lambda config: files.read(Path("mine")))
    tree = changed(TREE, problem__data={"kind": "mnist", "split_seed": 12345})
    with pytest.raises(DataError, match=r"must declare that it reads .*/mine; give"):
        studies.simulate(tree, "s")


def test_many_files_of_a_data_set_are_one_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data" / "many"
    root.mkdir(parents=True)
    paths = [root / f"{number}.csv" for number in range(100)]
    for path in paths:
        path.write_text(path.name)
    monkeypatch.setattr(mnist.Mnist, "located_files", lambda self: paths)
    scenario = validated(changed(TREE, problem__data={"kind": "mnist"}))
    found = inputs.collect([scenario]).named
    one = found["$STALESIM_DATA/many (100 files)"]
    assert (one.at, one.bytes) == (str(root), sum(len(path.name) for path in paths))
    paths[50].write_text("5O.csv")
    assert inputs.collect([scenario]).named != found


# Which entries name files.


def classes() -> set[type[Config]]:
    """Returns every class of which a scenario may be made."""
    known: set[type[Config]] = set()
    todo = [Scenario, WorldScenario]
    parts = [part for kind in BASES for part in own_parts(kind)]
    todo += [part for part in parts if isinstance(part, type)]  # no records
    while todo:
        kind = todo.pop()
        if kind not in known:
            known.add(kind)
            todo += [
                inner
                for field in kind.model_fields.values()
                for inner in _inner(field.annotation)
            ]
    return known


def _inner(annotation: Any) -> list[type[Config]]:
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [found for part in get_args(annotation) for found in _inner(part)]


def test_every_entry_that_names_a_file_says_so() -> None:
    found = classes()
    assert len(found) > 90
    assert [kind.__name__ for kind in found if unmarked(kind)] == []
    named_ones = {k.__name__ for k in found if any(mark for _, mark in marks(k))}
    of_data = {"Npz", "Csv", "Parquet", "Generated", "Text"}
    of_models = {"Problem", "Python", "ServerModel", "Vector"}
    of_time = {"Empirical", "Traced", "Recording", "Power"}
    of_time |= {"FedScaleTrace", "FlashTrace", "FLHetBenchTrace"}
    assert named_ones == {*of_data, *of_models, *of_time, "ListedRows"}


def test_entries_are_found_wherever_they_stand() -> None:
    group = {"number": 4, "compute": MIXED, "availability": TRACED}
    scenario = validated(
        changed(TREE, clients={"groups": {"phones": group}}, server__service=MEASURED)
    )
    found = {".".join(keys): path for keys, path, _ in named_files(scenario)}
    assert found == {
        "problem.data.path": "d.npz",
        "clients.groups.phones.compute.of.1.path": "more.csv",
        "clients.groups.phones.availability.path": "a.parquet",
        "server.service.path": "more.csv",
    }
    assert {type(part).__name__ for part in parts_within(scenario)} >= {
        "Npz",
        "Empirical",
    }


def test_the_timelines_digest_knows_every_file(here: Path) -> None:
    tree = changed(TREE, server__service=MIXED)
    write_times(here / "more.csv", 1)
    run = expand(validated(tree))[0]
    first = set_up(run).timeline.digest
    write_times(here / "more.csv", 2)
    assert set_up(run).timeline.digest != first


# Modules that bring parts.

MODULE = """
from typing import Literal
import numpy as np
from stalesim.simulator.world.laws.base import Law

class Mine(Law):
    law: Literal["mine"] = "mine"

    def make(self, population):
        return Mined(self, population)

class Mined:
    def __init__(self, config, population):
        pass
    def lattice(self):
        return None
    def draw(self, draws, tick):
        return np.full(draws.uniform.shape, FACTOR) * draws.uniform

STALESIM = {"laws": (Mine,)}
"""


OWN = {
    "plain_of_inputs.py": "import flax\nfrom layers_of_inputs import act\n"
    "import numpy, json\n",
    "layers_of_inputs.py": "def act(x):\n    from pack_of_inputs.inner import late\n"
    "    return late(x)\n",
    "pack_of_inputs/__init__.py": "",
    "pack_of_inputs/inner.py": "from .beside import late\n",
    "pack_of_inputs/beside.py": "import optax, stalesim\ndef late(x):\n    return x\n",
}


@pytest.fixture
def own(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package's folder of modules of a user's own, none of them imported yet."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(here)])
    before = {*sys.modules}
    for name, text in OWN.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text)
    yield here
    for name in {*sys.modules} - before:
        if name.partition(".")[0].endswith("_of_inputs"):
            del sys.modules[name]


def test_own_code_is_all_that_a_module_imports(own: Path) -> None:
    modules, libraries = own_code.of("plain_of_inputs")
    names = ["layers_of_inputs", "pack_of_inputs", "plain_of_inputs"]
    assert [*modules] == names
    assert modules["pack_of_inputs"][0] == str(own / "pack_of_inputs")
    assert libraries == ("flax", "numpy", "optax")
    assert not {*names} & {*sys.modules}, "nothing is executed to find out"
    (own / "pack_of_inputs" / "beside.py").write_text("late = abs\n")
    changed, _ = own_code.of("plain_of_inputs")
    same = {n for n in names if changed[n] == modules[n]}
    assert same == {*names} - {"pack_of_inputs"}


def of_function(own: Path, digest: str) -> Content:
    layers = {"layers_of_inputs": (str(own / "layers_of_inputs.py"), digest)}
    at = str(own / "plain_of_inputs.py")
    return Content(at, f"all of {digest}", 9, layers, ("flax",))


def test_a_helper_of_ones_own_that_changes_is_named(own: Path) -> None:
    def read(digest: str, **modules: Content) -> inputs.Inputs:
        named = {"plain_of_inputs:build": of_function(own, digest)}
        return inputs.Inputs(str(own), str(own), named, {}, modules, {})

    then = read("a" * 64, law=Content("law.py", "0", 0, {"mean": ("mean.py", "1")}))
    manifest = json.loads(json.dumps(inputs.manifest_entries(then)))
    origins.check_files(Path("s"), manifest, then)
    origins.check_modules(Path("s"), manifest, then)
    now = read("b" * 64, law=Content("law.py", "0", 0, {"mean": ("mean.py", "2")}))
    layers = own / "layers_of_inputs.py"
    with pytest.raises(
        StudyError, match=f"{layers} has changed .its SHA-256 was aaaaa"
    ):
        origins.check_files(Path("s"), manifest, now)
    with pytest.raises(StudyError, match=r"module law .* mean\.py has changed since"):
        origins.check_modules(Path("s"), manifest, now)


def test_functions_count_with_what_they_import(own: Path) -> None:
    (own / "plain_of_inputs.py").write_text("from layers_of_inputs import act\n")
    first = functions.content("plain_of_inputs:act", "problem.model.build")
    assert [*first.imports] == ["layers_of_inputs", "pack_of_inputs"]
    for name in ("plain_of_inputs", "layers_of_inputs"):
        del sys.modules[name]
    plugins._sources.pop("plain_of_inputs")
    (own / "layers_of_inputs.py").write_text("def act(x):\n    return -x\n")
    second = functions.content("plain_of_inputs:act", "problem.model.build")
    assert second.sha256 != first.sha256


def test_objects_count_with_what_they_import(own: Path) -> None:
    import_module("layers_of_inputs")
    (own / "layers_of_inputs.py").write_text("import pack_of_inputs\nact = abs\n")
    given = (sys.modules["layers_of_inputs"].act, len)
    first = functions.hand_over("model", given)
    (own / "pack_of_inputs" / "__init__.py").write_text("x = 1\n")
    assert functions.hand_over("model", given) != first


OTHERS = [*origins.LIBRARIES, "flax", "code"]


@pytest.mark.parametrize("name", OTHERS)
def test_a_study_goes_on_with_the_same_program_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"code": "abc", **dict.fromkeys(origins.LIBRARIES, "1"), "flax": "1"}
    manifest = {"environment": made, "commit": "f" * 40, "dirty": False}
    here = {"environment": {**made, name: "2"}}
    read = inputs.Inputs("", "", {}, {}, {}, {})
    read.named["plain:build"] = Content("plain.py", "0", 1, {}, ("flax",))
    monkeypatch.setattr(origins, "of_this_program", lambda also: here)
    with pytest.raises(StudyError) as error:
        origins.check_program(Path("s"), manifest, read)
    said = str(error.value)
    assert "choose another folder by --out, or replace the study by --over" in said
    assert "\n" not in said
    expected = f"with {name} 1, with which it was started, got 2"
    assert (
        expected if name != "code" else "was abc, is 2); go back to commit ff"
    ) in said
    here["environment"][name] = made[name]
    origins.check_program(Path("s"), manifest, read)


@pytest.mark.long
def test_a_study_goes_on_with_the_same_modules_alone(here: Path) -> None:
    module = here / "mine_of_inputs.py"
    module.write_text(MODULE.replace("FACTOR", "1.0"))
    tree = changed(TREE, clients={"compute": {"law": "mine"}})
    Path("s.yaml").write_text(json.dumps(tree))
    brings = ("--plugin", module.name)
    options = ("-o", "s", "--no-plots", "-j", "1")
    done = stalesim(*brings, "run", "s.yaml", *options)
    assert done.returncode == 0, done.stderr
    told = load("s").manifest["modules"]
    assert told["mine_of_inputs"]["file"] == str(module)
    assert len(told["mine_of_inputs"]["sha256"]) == 64
    module.write_text(MODULE.replace("FACTOR", "2.0"))
    done = stalesim(*brings, "run", "s.yaml", *options)
    assert done.returncode == 0, "nothing is left to be executed"
    done = stalesim(*brings, "run", "s.yaml", *options, "-s", "replicates=2")
    assert done.returncode == 2
    assert "continued with the module mine_of_inputs with which it was" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_part_must_mark_the_files_that_it_names(here: Path) -> None:
    module = here / "mine_of_inputs.py"
    unmarked_one = MODULE.replace(
        '"mine"\n', '"mine"\n    log_path: str | None = None\n', 1
    )
    module.write_text(unmarked_one)
    done = stalesim("--plugin", module.name, "list")
    assert done.returncode == 2
    assert "must mark entries that name files, got Mine.log_path" in done.stderr
    assert done.stderr.count("\n") == 1
