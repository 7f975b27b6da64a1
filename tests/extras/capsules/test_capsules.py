"""Capsules: what is in them, that they repeat, and what is said of damaged ones."""

import contextlib
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stalesim.simulator import studies
from stalesim.simulator.extras import capsules
from stalesim.simulator.extras.capsules import packing
from stalesim.simulator.extras.capsules.contents import digests
from stalesim.simulator.files.study import StudyError, load
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.reading import loads, loads_any
from stalesim.simulator.studies.saved import record
from tests.commands import invoked
from tests.runs import TINY, tiny_study

REST = """\
question: does it repeat?
replicates: 6
stop: {commits: 40}
evaluate: {every: {commits: 10}}
variants: {fast: {}, slow: {algorithm: {step_size: 1.0e-6}}}
claims:
  - {higher: fast, than: slow, says: "larger steps are ahead"}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_study(tmp_path_factory, REST)


@pytest.fixture(scope="module")
def packed(folder: Path) -> Path:
    return capsules.write(load(folder), licence="CC-BY-4.0")


def rerun(path: Path, folder: Path) -> tuple[int, str]:
    result = invoked("rerun", path, "-o", folder, "-j", 1)
    return result.exit_code, result.output


def changed(
    packed: Path, place: Path, change: Callable[[dict[str, bytes]], Any]
) -> Path:
    """Writes a capsule with other files than it had."""
    with zipfile.ZipFile(packed) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    path = place / "changed.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def remanifested(files: dict[str, bytes], **changes: Any) -> None:
    """Changes entries of the manifest; None removes one."""
    manifest = json.loads(files["manifest.json"]) | changes
    kept = {key: value for key, value in manifest.items() if value is not None}
    files["manifest.json"] = json.dumps(kept).encode()


def first_line(files: dict[str, bytes], table: str) -> bytes:
    return files[f"results/{table}.csv"].splitlines(keepends=True)[0]


def without_runs(files: dict[str, bytes]) -> None:
    remanifested(files, runs=[])
    files["results/runs.csv"] = first_line(files, "runs")


def test_the_readme_says_what_is_inside_and_what_is_not(packed: Path) -> None:
    files = capsules.read(packed).files
    said = files["README.md"].decode()
    assert all(f"- `{name}`: " in said for name in {*files} - {"README.md"})
    assert "Licence of scenario and results: CC-BY-4.0." in said
    assert "not part of it:\n\n- breast_cancer: " in said
    assert "licence: CC BY 4.0" in said


def test_the_same_study_gives_the_same_capsule(folder: Path, tmp_path: Path) -> None:
    one, two = (
        capsules.write(load(folder), tmp_path / f"{n}.zip").read_bytes() for n in "ab"
    )
    assert one == two


def test_digests_tell_traces_apart(folder: Path) -> None:
    found = digests(load(folder))
    assert len(found) == 12
    assert found["sha256"].nunique() == 12
    again = digests(load(folder))
    assert found["sha256"].to_list() == again["sha256"].to_list()


def test_a_capsule_is_repeated(packed: Path, tmp_path: Path) -> None:
    code, output = rerun(packed, tmp_path / "again")
    assert code == 0, output
    assert "traces: 12 of 12 runs equal to the bit" in output
    assert "the same verdicts: 1 verdict" in output
    study = load(tmp_path / "again")
    study.manifest["environment"]["jax"] = "9"
    study.manifest["inputs"] = {"a.npz": {"sha256": "0"}}
    found = capsules.compare(capsules.read(packed), study)
    assert [*found.environment] == ["jax"]
    assert found.inputs == ["a.npz"]
    assert found.same_verdicts
    assert found.environment


def test_what_differs_is_named(packed: Path, tmp_path: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        scenario = files["scenario.yaml"].replace(b"1.0e-06", b"0.09")
        assert scenario != files["scenario.yaml"]
        files["scenario.yaml"] = scenario

    path = changed(packed, tmp_path, change)
    code, output = rerun(path, tmp_path / "other")
    assert code == 1
    assert "traces: 6 of 12 runs equal to the bit; not slow (replicate 0)" in output
    assert "holds then, " in output
    assert "other verdicts: 1 of 1 verdict" in output


DAMAGE: dict[str, tuple[Callable[[dict[str, bytes]], Any], str]] = {
    "no scenario": (
        lambda files: files.pop("scenario.yaml"),
        "scenario.yaml is missing",
    ),
    "no claims": (
        lambda files: files.pop("results/claims.csv"),
        "results/claims.csv is missing",
    ),
    "claims without columns": (
        lambda files: files.update({"results/claims.csv": b"claim\n"}),
        "results/claims.csv has no column says",
    ),
    "no manifest": (
        lambda files: files.update({"manifest.json": b"{}"}),
        "manifest.json is no manifest",
    ),
    "a name that leads elsewhere": (
        lambda files: remanifested(files, name="../../../evil"),
        "beginning with a letter or digit, got '../../../evil'",
    ),
    "an absolute name": (
        lambda files: remanifested(files, name="/tmp/evil"),
        "beginning with a letter or digit, got '/tmp/evil'",
    ),
    "no name": (lambda files: remanifested(files, name=None), "no manifest"),
    "nested": (
        lambda files: files.update({"manifest.json": b"[" * 200_000}),
        "nested too deep",
    ),
    "an environment that is a list": (
        lambda files: remanifested(files, environment=[]),
        "environment: Input should be a valid dictionary",
    ),
    "inputs that are a list": (
        lambda files: remanifested(files, inputs=[]),
        "inputs: Input should be a valid dictionary",
    ),
    "runs that are none": (lambda files: remanifested(files, runs=[3]), "runs.0"),
    "runs without columns": (
        lambda files: files.update({"results/runs.csv": b"a\n1\n"}),
        "results/runs.csv has no column group",
    ),
    "no rows of runs": (
        lambda files: files.update({"results/runs.csv": first_line(files, "runs")}),
        "results/runs.csv has not a row for each run",
    ),
    "no runs at all": (lambda files: without_runs(files), "it has no runs"),
    "no verdicts": (
        lambda files: files.update({"results/claims.csv": first_line(files, "claims")}),
        "results/claims.csv has no verdicts on the claims",
    ),
    "a scenario that is no text": (
        lambda files: files.update({"scenario.yaml": b"\xff\xfe"}),
        "scenario.yaml is no text",
    ),
    "a module that is a folder": (
        lambda files: files.update({"modules/..": b""}),
        "'modules/..' is no name of a module",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_one_line(case: str, packed: Path, tmp_path: Path) -> None:
    change, words = DAMAGE[case]
    with pytest.raises(StudyError) as caught:
        capsules.read(changed(packed, tmp_path, change))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("size", [0, 10, 1000, -10])
def test_a_file_that_breaks_off_is_one_line(
    size: int, packed: Path, tmp_path: Path
) -> None:
    path = tmp_path / "half.zip"
    path.write_bytes(packed.read_bytes()[:size])
    with pytest.raises(StudyError, match="is no whole zip file"):
        capsules.read(path)


def test_bits_that_turned_are_found(packed: Path, tmp_path: Path) -> None:
    content, refused = packed.read_bytes(), 0
    for place in range(40, len(content) - 100, len(content) // 15):
        turned = bytearray(content)
        turned[place] ^= 0x10
        path = tmp_path / "turned.zip"
        path.write_bytes(turned)
        found = None
        with contextlib.suppress(StudyError):
            found = capsules.read(path)
        if found is None:
            refused += 1
        else:  # it is in a time, a mode, or a name that is not read
            assert dict(found.files) == dict(capsules.read(packed).files)
    assert refused > 8


def test_what_is_no_capsule(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="must be a capsule that can be read"):
        capsules.read(tmp_path / "nothing.zip")


def test_what_rerun_would_refuse_is_not_packed(folder: Path, tmp_path: Path) -> None:
    study = load(folder)
    study.manifest["name"] = "../evil"
    with pytest.raises(StudyError, match="must have a name of at most 100 letters"):
        capsules.write(study, tmp_path / "a.zip")


def test_formulas_in_a_capsule_are_text(folder: Path, tmp_path: Path) -> None:
    study = load(folder)
    for run in study.manifest["runs"]:
        run["label"] = run["variant"] = "=HYPERLINK(1)"
    found = capsules.read(capsules.write(study, tmp_path / "a.zip"))
    assert set(found.table("results/runs.csv")["group"]) == {"'=HYPERLINK(1)"}
    assert b",=H" not in found.files["results/results.csv"]
    again = capsules.compare(found, study)
    assert again.same_runs == again.runs


def test_a_run_that_the_capsule_lacks_is_another_one(
    packed: Path, folder: Path
) -> None:
    found = capsules.read(packed)
    table = found.files["results/runs.csv"].splitlines(keepends=True)
    fewer = {**found.files, "results/runs.csv": b"".join(table[:-1])}
    again = capsules.compare(found._replace(files=fewer), load(folder))
    assert (again.same_runs, again.runs) == (11, 12)


def test_what_a_plugin_imports_is_packed_as_well(folder: Path, tmp_path: Path) -> None:
    study, told = load(folder), []
    for name in ("plugin", "helper"):
        (tmp_path / f"{name}.py").write_text(name)
        sha256 = hashlib.sha256(name.encode()).hexdigest()
        told.append((str(tmp_path / f"{name}.py"), sha256))
    entry = {"file": told[0][0], "sha256": told[0][1], "imports": {"helper": told[1]}}
    study.manifest["modules"] = {"plugin": entry}
    found = capsules.read(capsules.write(study, tmp_path / "a.zip"))
    assert found.modules == ["modules/plugin.py", "modules/helper.py"]


@pytest.mark.costly
def test_a_loss_of_ones_own_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scale_of_mine.py").write_text("SCALE = 0.5\n")
    file = Path("loss_of_mine.py")
    file.write_text(
        "from scale_of_mine import SCALE\n"
        "def scaled(outputs, targets):\n"
        "    return SCALE * (outputs[:, 0] - targets) ** 2\n"
    )
    named = TINY.replace("  partition", "  loss: 'loss_of_mine:scaled'\n  partition")
    rest = "stop: {commits: 20}\nevaluate: {every: {commits: 10}}\n"
    study = studies.simulate(loads(named + rest, "tiny.yaml"), tmp_path / "study")
    found = capsules.read(capsules.write(study, tmp_path / "a.zip"))
    assert found.modules == ["modules/loss_of_mine.py", "modules/scale_of_mine.py"]
    assert found.named == found.modules[:1]
    assert found.left_out == []
    file.write_text("# another\n")
    with pytest.raises(StudyError, match="has changed; put it back"):
        capsules.write(study, tmp_path / "b.zip")


def test_code_is_not_executed_unasked(packed: Path, tmp_path: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        files["modules/x.py"] = b"raise SystemExit"

    path = changed(packed, tmp_path, change)
    with pytest.raises(
        UserError, match=r"\(modules/x.py\); read it, then add --run-co"
    ):
        rerun(path, tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_what_cannot_be_packed(folder: Path, tmp_path: Path) -> None:
    study = load(folder)
    with pytest.raises(StudyError, match=r"ends in \.zip, got a\.tar; rename it"):
        capsules.write(study, "a.tar")
    with pytest.raises(StudyError, match="the capsule must be written, but"):
        capsules.write(study, tmp_path / "no" / "a.zip")
    study.manifest["modules"] = {"x": {"file": str(tmp_path / "x.py"), "sha256": "0"}}
    with pytest.raises(StudyError, match="is gone; put it back"):
        capsules.write(study, tmp_path / "a.zip")
    (tmp_path / "x.py").write_text("1")
    with pytest.raises(StudyError, match="has changed; put it back"):
        capsules.write(study, tmp_path / "a.zip")
    sha256 = hashlib.sha256(b"1").hexdigest()
    study.manifest["modules"]["x"]["sha256"] = sha256
    path = capsules.write(study, tmp_path / "a.zip")
    assert capsules.read(path).files["modules/x.py"] == b"1"
    study.manifest["status"] = "incomplete"
    with pytest.raises(StudyError, match="must be complete to be a capsule"):
        capsules.write(study, tmp_path / "a.zip")
    del study.manifest["scenario"]["seed"]
    with pytest.raises(StudyError, match=r"imported from a log, .*; send the log"):
        capsules.write(study, tmp_path / "a.zip")


WORLD = """\
name: world
clients: {number: 3, compute: {law: expon, scale: 1.0}}
protocol: {kind: asynchronous}
stop: {commits: 30}
replicates: 2
"""


@pytest.mark.parametrize("kept", ["everything", "summary"])
def test_a_timeline_is_packed_and_repeated(kept: str, tmp_path: Path) -> None:
    scenario = loads_any(f"{WORLD}record: {kept}\n", "world")
    path = capsules.write(record(scenario, tmp_path / "world"))
    found = capsules.read(path)
    assert "results/claims.csv" not in found.files
    assert found.table("results/results.csv")["commits_per_s"].astype(float).gt(0).all()
    code, output = rerun(path, tmp_path / "again")
    assert code == 0, output
    assert "traces: 2 of 2 runs equal to the bit" in output
    assert "verdict" not in output
    text = f"{WORLD}record: {kept}\nseed: 7\n"
    other = record(loads_any(text, "world"), tmp_path / "other")
    again = capsules.compare(found, other)
    assert (again.same_verdicts, again.same, again.same_runs) == (True, False, 0)


def test_a_capsule_that_is_too_large(tmp_path: Path, monkeypatch: Any) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(10_000))
    path = tmp_path / "large.zip"
    path.write_bytes(file.getvalue())
    monkeypatch.setattr(packing, "MOST_BYTES", 9_999)
    with pytest.raises(StudyError, match=r"more than 9\.765 KiB"):
        capsules.read(path)
