import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from stalesim.analysis import files
from stalesim.analysis.markup import FORMULAS
from stalesim.simulator.cli.commands import app
from stalesim.simulator.extras.trackers import exporter, records
from stalesim.simulator.files.study import COLUMNS, StudyError, load
from stalesim.simulator.parts.errors import UserError
from tests.extras.trackers.exported import ACCURACY, EPSILON, Exported
from tests.support import write_study
from tests.unit.analysis.test_units import LOSSES, VALUES, Fitted
from tests.unit.test_hostile import NAMES

ROOT = Path(__file__).parents[3]


def test_a_record_says_what_a_run_was_and_what_it_cost() -> None:
    first, second = records.records(Exported())
    assert first.name == "0000-async-r0"
    assert second.name == "0001-step_size=0.2-r0"
    assert first.config == {
        "algorithm.kind": "vafl",
        "algorithm.step_size": 0.1,
        "problem.shuffle": True,
        "problem.groups": "[[0, 1], [2]]",
        "clients.groups.slow phones, 10 %.number": 5,
    }
    assert first.tags["variant"] == "async"
    assert (first.tags["replicate"], first.tags["seed"]) == ("0", "40")
    assert (first.tags["delta"], first.tags["formal_rdp"]) == ("1e-05", "yes")
    assert first.tags["protects"] == "a sample"
    assert "delta" not in second.tags
    assert first.points["commits"].tolist() == [0, 10, 20]
    assert first.points["epsilon_rdp"].tolist() == EPSILON
    assert first.points["test_accuracy"].tolist() == ACCURACY["async"]
    assert "epsilon_rdp" not in second.points
    assert first.final == {
        "commits": 20,
        "virtual_s": 2,
        "elapsed_s": 0.5,
        "staleness_mean": 13 / 5,
        "staleness_q50": 1,
        "staleness_q95": 9,
        "staleness_max": 9,
    }


def test_missing_values_are_left_out_of_a_point() -> None:
    assert records.values({"a": 1, "b": np.nan, "c": None, "d": np.inf}) == {
        "a": 1.0,
        "d": np.inf,
    }


def test_csv_has_a_file_per_table_with_rows_and_says_which_runs_are_left_out(
    tmp_path: Path,
) -> None:
    study = Exported()
    folder = tmp_path / "out"
    left_out = exporter.export(study, "csv", folder)
    assert left_out == {"failed": 1, "incomplete": 1}
    names = {path.name for path in folder.iterdir()}
    assert names == {"runs.csv", "evaluations.csv", "staleness.csv", "privacy.csv"}
    read = pd.read_csv(folder / "evaluations.csv")
    ended = study.table("evaluations").query("run < 2").reset_index(drop=True)
    pd.testing.assert_frame_equal(read, ended, check_dtype=False)
    about = pd.read_csv(folder / "runs.csv")
    assert about["stop"].tolist() == ["time", "time", "failed", "incomplete"]
    assert about["algorithm.step_size"].tolist() == [0.1, 0.2, 0.1, 0.1]
    assert about["seed"].tolist()[:2] == [40, 41]


def test_text_in_csv_is_no_formula_and_numbers_are_numbers(tmp_path: Path) -> None:
    study = Exported()
    formulas = ('=HYPERLINK("http://evil")', "+1", "-1+1", "@sum(A1)", "\t=1", "\r=1")
    plain = ("a=1", "'=1", "[-1]", " =1")
    runs = study.manifest["runs"]
    study.manifest["runs"] = [
        runs[0] | {"run": number, "label": text, "commits": -5}
        for number, text in enumerate((*formulas, *plain))
    ]
    for run in study.manifest["runs"]:
        run["scenario"] = {"clients": {"scale": "-m", "loc": -2.5}, "=key": "=1"}
    table = study.tables["privacy"]
    study.tables["privacy"] = table.assign(accountant="=cmd()", epsilon=-0.5)
    exporter.export(study, "csv", tmp_path / "out")
    lines = (tmp_path / "out" / "runs.csv").read_text(encoding="utf-8")
    with (tmp_path / "out" / "runs.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == [
        *(f"'{text}" for text in formulas),
        *plain,
    ]
    assert {row["commits"] for row in rows} == {"-5"}
    assert {row["clients.loc"] for row in rows} == {"-2.5"}
    assert {row["clients.scale"] for row in rows} == {"'-m"}
    assert {row["'=key"] for row in rows} == {"'=1"}
    assert not [
        cell
        for row in csv.reader(lines.splitlines())
        for cell in row
        if cell.startswith(("=", "+", "@"))
    ]
    spent = pd.read_csv(tmp_path / "out" / "privacy.csv")
    assert set(spent["accountant"]) == {"'=cmd()"}
    assert set(spent["epsilon"]) == {-0.5}


def test_an_export_that_was_cut_short_can_be_repeated_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"

    def half(study: Exported, into: Path) -> None:
        del study
        (into / "runs.csv").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(exporter.TARGETS, "csv", half)
    with pytest.raises(StudyError, match="No space left on device; make room"):
        exporter.export(Exported(), "csv", folder)
    assert not folder.exists()
    monkeypatch.undo()
    folder.mkdir()
    exporter.export(Exported(), "csv", folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"runs.csv", "evaluations.csv", "staleness.csv", "privacy.csv"}


KILLED = """\
import os, signal, sys
from pathlib import Path
from stalesim.simulator.extras.trackers import exporter
from tests.extras.trackers.exported import Exported

def half(study, into):
    (into / "runs.csv").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

exporter.TARGETS["csv"] = half
exporter.export(Exported(), "csv", Path(sys.argv[1]))
"""


@pytest.mark.parametrize("there", [False, True])
def test_a_killed_export_is_not_taken_for_a_whole_one_and_can_be_repeated(
    tmp_path: Path, *, there: bool
) -> None:
    folder = tmp_path / "out"
    if there:
        folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder)], timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path))},
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    assert not (folder / "runs.csv").exists()
    exporter.export(Exported(), "csv", folder)
    assert (folder / "runs.csv").read_text() != "half"
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        exporter.export(Exported(), "csv", folder)


def test_what_others_put_beside_a_killed_export_stays(tmp_path: Path) -> None:
    (tmp_path / files.PARTIAL).mkdir()
    (tmp_path / files.PARTIAL / "runs.csv").write_text("half")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        exporter.export(Exported(), "csv", tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_kill_among_the_last_moves_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / files.WHOLE).mkdir()
    (tmp_path / files.WHOLE / "runs.csv").write_text("whole")
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        exporter.export(Exported(), "csv", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["runs.csv"]


def test_two_exports_do_not_meet_in_one_folder(tmp_path: Path) -> None:
    with files.filled(tmp_path / "out") as one:
        (one / "a").write_text("a")
        with pytest.raises(StudyError, match="by one process at a time"):
            exporter.export(Exported(), "csv", tmp_path / "out")
        assert (one / "a").exists()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a"]


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    (tmp_path / ".stalesim-partial-page.html").write_text("of a killed one")

    def write(text: str, *, fail: bool) -> None:
        with files.replaced(path) as new:
            new.write_text(text)
            if fail:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write("half", fail=True)
    assert path.read_text() == "old"
    write("new", fail=False)
    assert path.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_csv_of_a_trace_on_disk_keeps_lists_words_and_exact_numbers(
    tmp_path: Path,
) -> None:
    run = {"run": 0, "label": "base", "replicate": 0, "stop": "time"}
    message = np.array([[0.1, -2.5, 1e-30]], np.float32)
    columns = {
        "run": np.zeros(1, np.int32),
        "commit": np.array([2**53 + 1]),
        "time": np.array([0.1 + 0.2]),
        "client": np.zeros(1, np.int32),
        "job": np.zeros(1, np.int32),
        "message": message,
    }
    manifest = {"name": "x", "runs": [run]}
    write_study(tmp_path / "study", manifest, {"probes": columns})
    exporter.export(load(tmp_path / "study"), "csv", tmp_path / "out")
    (row,) = pd.read_csv(tmp_path / "out" / "probes.csv").to_dict("records")
    assert set(row) <= set(COLUMNS["probes"])
    assert (row["commit"], row["time"]) == (2**53 + 1, 0.1 + 0.2)
    assert json.loads(row["message"]) == message[0].tolist()


def test_csv_of_a_summary_has_the_tables_that_there_are(tmp_path: Path) -> None:
    run = {"run": 0, "label": "base", "replicate": 0, "stop": "time"}
    manifest = {"name": "x", "runs": [run], "scenario": {"record": "summary"}}
    columns = {"run": np.zeros(1, np.int32), "time": np.ones(1), "commits": np.ones(1)}
    write_study(tmp_path / "study", manifest, {"evaluations": columns})
    exporter.export(load(tmp_path / "study"), "csv", tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"runs.csv", "evaluations.csv"}


def test_tags_say_units_and_directions_without_the_plug_in() -> None:
    study: Any = Fitted(True, VALUES)
    tags = next(records.records(study)).tags
    assert tags["unit_fit"] == "dB"
    assert (tags["better_fit"], tags["unit_test_loss"]) == ("higher", "mm")
    study = Fitted(True, VALUES, [*LOSSES[:3], {"loss": "softmax"}])
    each = [record.tags.get("unit_test_loss") for record in records.records(study)]
    assert each == ["mm", "mm", "mm", "nats"]


@pytest.mark.parametrize("target", ["csv", "tensorboard"])
def test_exports_hold_hostile_names_and_no_formulas(
    target: str, tmp_path: Path
) -> None:
    if target == "tensorboard":
        pytest.importorskip("tensorboardX")
    runs = [
        {"run": number, "label": name, "replicate": 0, "stop": "time"}
        for number, name in enumerate(NAMES)
    ]
    columns = {"run": np.arange(len(NAMES)), "time": np.ones(len(NAMES))}
    columns = {**columns, "commits": np.ones(len(NAMES), np.int64)}
    write_study(tmp_path / "s", {"name": "x", "runs": runs}, {"evaluations": columns})
    folder = tmp_path / "out"
    exporter.export(load(tmp_path / "s"), target, folder)
    if target == "tensorboard":
        assert len(list(folder.iterdir())) == len(NAMES)
        return
    with (folder / "runs.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    quoted = [f"'{name}" if name.startswith(FORMULAS) else name for name in NAMES]
    assert [row["variant"] for row in rows] == quoted


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"target must be one of csv, .* 'xls'"):
        exporter.export(Exported(), "xls", tmp_path / "out")
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        exporter.export(Exported(), "csv", tmp_path)
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        exporter.export(Exported(), "csv", tmp_path / "note.txt")
    with pytest.raises(StudyError, match="the export must be written, but "):
        exporter.export(Exported(), "csv", tmp_path / "note.txt" / "inside")
    study = Exported()
    study.manifest["runs"] = study.manifest["runs"][2:]
    with pytest.raises(StudyError, match="'fake' must have a run that has ended"):
        exporter.export(study, "csv", tmp_path / "out")


def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UserError, match=r'pip install "stalesim\[tensorboard\]"$'):
        exporter.export(Exported(), "tensorboard", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_exports_and_says_what_it_left_out(tmp_path: Path) -> None:
    study = Exported()
    table = study.table("evaluations")
    columns = {name: table[name].to_numpy() for name in table}
    write_study(tmp_path / "study", study.manifest, {"evaluations": columns})
    command = ["export", str(tmp_path / "study"), "--to", "csv"]
    done = CliRunner().invoke(app, command)
    assert done.exception is None
    assert "Left out: 1 run that is failed" in done.stderr
    assert "(2 runs)" in done.stdout
    assert (tmp_path / "study" / "export-csv" / "evaluations.csv").exists()
    again = CliRunner().invoke(app, command)  # one line: tests/unit/test_cli.py
    assert isinstance(again.exception, UserError)
    assert "new or empty folder" in str(again.exception)
