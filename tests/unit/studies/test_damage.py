"""Whatever is damaged in a study's folder is said; no number changes without a word."""

import contextlib
import json
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from stalesim.analysis import claims
from stalesim.analysis.tables import plain, results
from stalesim.simulator import studies
from stalesim.simulator.cli.results import check
from stalesim.simulator.files.study import (
    COLUMNS,
    DamageError,
    Study,
    StudyError,
    StudyWarning,
    load,
)
from stalesim.simulator.files.study.manifest import NAME
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.studies.saved import record
from tests.support import SGD, VAFL

LEARNING: dict[str, Any] = {
    "name": "damaged",
    "replicates": 3,
    **SGD,
    "clients": {"compute": {"law": "expon"}, "loss": {"chance": 0.2, "timeout": 1}},
    "protocol": {"kind": "asynchronous"},
    "algorithm": {
        **SGD["algorithm"],
        "mechanism": {"clip_bound": 1.0, "multiplier": 1.0},
    },
    "privacy": {"delta": 1e-5},
    "stop": {"commits": 60},
    "evaluate": {"every": {"commits": 20}},
    "probe": {"every": 30, "what": ["message"]},
    "engine": {"mode": "compiled"},
    "variants": {"slow": {}, "fast": {"clients": {"compute": {"scale": 0.5}}}},
    "claims": [
        {"faster": "fast", "than": "slow", "to": {"test_accuracy": 0.3}, "says": "so"}
    ],
}
"""A study that has rows in nearly every table."""


def tables(study: Study) -> dict[str, pa.Table]:
    """Returns the tables of a study, as they lie there: all that its numbers are."""
    return {name: study.arrow(name) for name in COLUMNS}


def frames(study: Study) -> dict[str, pd.DataFrame]:
    """Returns the tables of a study in the order of their runs."""
    return {name: study.table(name) for name in COLUMNS}


def told(study: Study) -> dict[str, pd.DataFrame]:
    """Returns what a study says apart from its tables."""
    found: dict[str, pd.DataFrame] = {}
    if study.manifest.get("kind") != "timeline":
        found["results"] = plain(results(study))
        found["claims"] = claims.evaluate(study)
    entries = [
        json.dumps({k: v for k, v in run.items() if k != "rows"}, sort_keys=True)
        for run in study.manifest["runs"]
    ]
    found["manifest"] = pd.DataFrame({"entry": entries})
    return found


def shown(study: Study) -> dict[str, Any]:
    """Returns everything that a study says."""
    return tables(study) | told(study)


def differs(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return any(not equals(one[name], other[name]) for name in one)


def equals(one: Any, other: Any) -> bool:
    """Says whether two tables or frames are the same; for pandas, NaN is NaN."""
    if one.equals(other) or isinstance(one, pd.DataFrame):
        return one.equals(other)
    return one.to_pandas().equals(other.to_pandas())


@pytest.fixture(name="study", scope="module")
def _study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return studies.simulate(validated(LEARNING), tmp_path_factory.mktemp("a") / "s")


@pytest.fixture(name="running", scope="module")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study that was killed before its end."""
    folder = tmp_path_factory.mktemp("b") / "s"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studies.running.StudyFolder, "end", lambda self: load(self.path))
        studies.simulate(validated(LEARNING), folder)
    return load(folder)


@pytest.fixture(name="timeline", scope="module")
def _timeline(tmp_path_factory: pytest.TempPathFactory) -> Study:
    world = {key: VAFL[key] for key in ("name", "clients", "protocol", "stop")}
    world["clients"] = {**world["clients"], "number": 4}
    return record(
        WorldScenario.model_validate(world), tmp_path_factory.mktemp("c") / "s"
    )


def flip(data: bytes, rng: np.random.Generator) -> bytes:
    place = int(rng.integers(len(data)))
    changed = data[place] ^ (1 << int(rng.integers(8)))
    return data[:place] + bytes([changed]) + data[place + 1 :]


def zero(data: bytes, rng: np.random.Generator) -> bytes:
    first = int(rng.integers(len(data)))
    last = min(len(data), first + int(rng.integers(1, 512)))
    return data[:first] + bytes(last - first) + data[last:]


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def append(data: bytes, rng: np.random.Generator) -> bytes:
    return data + rng.bytes(int(rng.integers(1, 64)))


def delete(data: bytes, rng: np.random.Generator) -> None:
    return None


DAMAGES: dict[Callable[..., bytes | None], int] = {
    flip: 12, zero: 5, truncate: 3, append: 2, delete: 1
}  # fmt: skip
"""Ways of damaging a file, and how often each is tried with each file."""


def files_of(study: Study) -> list[Path]:
    return sorted(
        path.relative_to(study.folder)
        for path in study.folder.rglob("*")
        if path.is_file() and path.name != ".lock"
        if re.match("part-0000[1-9]-", path.name) is None  # of one task
    )


def damaged(study: Study, place: Path) -> Iterator[str]:
    """Damages one file after the other in a copy of a study; yields what it did."""
    rng = np.random.default_rng(7)
    shutil.copytree(study.folder, place)
    for file in files_of(study):
        whole = (place / file).read_bytes()
        for damage, times in DAMAGES.items():
            for _ in range(times):
                data = damage(whole, rng)
                if data == whole:
                    continue
                (place / file).unlink()
                if data is not None:
                    (place / file).write_bytes(data)
                yield f"{damage.__name__} {file}"
        (place / file).write_bytes(whole)


@pytest.mark.parametrize("which", ["study", "running", "timeline"])
def test_no_damage_is_silent(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    study: Study = request.getfixturevalue(which)
    right, rows, tried, said = told(study), tables(study), 0, 0
    for what in damaged(study, tmp_path / "s"):
        tried += 1
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                found = load(tmp_path / "s")
                same = not differs(rows, tables(found))
                now = told(found) if not heard else {}
            except StudyError as error:
                said += "\n" not in str(error) and len(str(error)) < 600
                continue
        if any(issubclass(one.category, StudyWarning) for one in heard):
            said += 1
            continue
        # A journal whose end is cut off is that of a study that was killed earlier.
        entries = now["manifest"]["entry"]
        if "journal" in what and any('"incomplete"' in entry for entry in entries):
            said += 1
            continue
        assert same, what
        assert not differs(right, now), what
    assert tried > 60
    assert said > 0.95 * tried


def spoil(folder: Path, file: str, damage: Callable[..., bytes | None]) -> Path:
    """Damages a file of a folder, and returns it."""
    (path,) = folder.glob(file)
    data = damage(path.read_bytes(), np.random.default_rng(1))
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    return path


@pytest.mark.parametrize("table", ["commits", "evaluations", "jobs"])
@pytest.mark.parametrize("damage", [flip, delete])
def test_runs_whose_rows_are_damaged_are_repeated(
    table: str, damage: Any, study: Study, tmp_path: Path
) -> None:
    shutil.copytree(study.folder, tmp_path / "s")
    spoil(tmp_path / "s", f"{table}/*.parquet", damage)
    with pytest.warns(StudyWarning, match="6 runs .* are repeated"):
        again = studies.resume(tmp_path / "s")
    assert not differs(frames(again), frames(study))


@pytest.mark.parametrize("damage", [flip, delete])
def test_damage_is_no_verdict(
    damage: Any, study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "s"
    shutil.copytree(study.folder, whole)
    shutil.copytree(study.folder, folder)
    path = spoil(folder, "evaluations/*.parquet", damage)
    check([whole])
    assert ": so" in capsys.readouterr().out
    with pytest.raises(DamageError) as error:
        check([folder])
    said = str(error.value)
    assert "\n" not in said
    assert said.startswith(f"{path}: must be as it was written, but is ")
    assert said.endswith(f"by stalesim resume {folder}")
    assert capsys.readouterr().out == ""


def test_damage_of_one_task_repeats_its_runs_alone(
    running: Study, tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    shutil.copytree(running.folder, folder)
    (folder / "commits" / "part-00002-00000.parquet").unlink()
    with pytest.warns(StudyWarning, match="rows of 1 runs"):
        again = studies.resume(folder)
    assert again.complete
    assert not differs(frames(again), frames(running))


SHAPES = {
    "a list": [],
    "a number": 1,
    "runs are a number": {"runs": 3},
    "a run is a list": {"runs": [[1]]},
    "a run without a label": {"runs": [{"run": 0}]},
    "no scenario": {"scenario": None},
    "parts are a list": {"parts": [1]},
    "seals are words": {"parts": {"commits": {"a": ["x", "y"]}}},
    "another status": {"status": "done"},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_a_manifest_of_another_shape_is_one_line(
    shape: Any, study: Study, tmp_path: Path
) -> None:
    manifest = study.manifest | shape if isinstance(shape, dict) else shape
    (tmp_path / NAME).write_text(json.dumps(manifest))
    with pytest.raises(StudyError, match=r"manifest\.json: must be") as error:
        load(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"[" * 100_000, b"", b"\x00" * 100])
def test_a_manifest_that_is_no_json_is_one_line(data: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(data)
    with pytest.raises(StudyError, match=r"is not JSON"):
        load(tmp_path)


@pytest.mark.parametrize("text", [b"[1]\n", b'{"99": {}}\n', b'{"0": 3}\n', b"\xff\n"])
def test_strange_lines_of_a_journal_are_said(
    text: bytes, running: Study, tmp_path: Path
) -> None:
    folder = tmp_path / "s"
    shutil.copytree(running.folder, folder)
    with (folder / "journal-1.log").open("ab") as journal:
        journal.write(text)
    with pytest.warns(StudyWarning, match="1 lines must be as they were written"):
        study = load(folder)
    assert not differs(frames(study), frames(running))


def test_a_first_file_half_written_blocks_nothing(tmp_path: Path) -> None:
    names = {"manifest.json.partial", "data.npz.partial"}
    for name in names:
        (tmp_path / name).write_bytes(b"{")
    assert studies.simulate(validated(LEARNING | {"replicates": 1}), tmp_path).complete
    assert not names & {path.name for path in tmp_path.iterdir()}


def test_a_study_of_an_older_format_is_one_line(study: Study, tmp_path: Path) -> None:
    manifest = {k: v for k, v in study.manifest.items() if k not in ("format", "parts")}
    (tmp_path / NAME).write_text(json.dumps(manifest))
    with pytest.raises(StudyError, match="must have format 2, got 1"):
        load(tmp_path)
    with contextlib.suppress(UserError):
        studies.resume(tmp_path)
