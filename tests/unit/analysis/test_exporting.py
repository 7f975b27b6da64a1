import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis import exporting
from analysis.exporting import records
from simulator.scenario.errors import UserError
from simulator.trace import COLUMNS, StudyError, load
from tests.support import write_study
from tests.unit.analysis.exported import ACCURACY, EPSILON, Exported


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
    done = exporting.export(study, "csv", tmp_path / "out")
    assert done.num_runs == 2
    assert done.left_out == {"failed": 1, "incomplete": 1}
    names = {path.name for path in done.folder.iterdir()}
    assert names == {"runs.csv", "evaluations.csv", "staleness.csv", "privacy.csv"}
    read = pd.read_csv(done.folder / "evaluations.csv")
    ended = study.table("evaluations").query("run < 2").reset_index(drop=True)
    pd.testing.assert_frame_equal(read, ended, check_dtype=False)
    about = pd.read_csv(done.folder / "runs.csv")
    assert about["stop"].tolist() == ["time", "time", "failed", "incomplete"]
    assert about["algorithm.step_size"].tolist() == [0.1, 0.2, 0.1, 0.1]
    assert about["seed"].tolist()[:2] == [40, 41]


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
    exporting.export(load(tmp_path / "study"), "csv", tmp_path / "out")
    (row,) = pd.read_csv(tmp_path / "out" / "probes.csv").to_dict("records")
    assert set(row) <= set(COLUMNS["probes"])
    assert (row["commit"], row["time"]) == (2**53 + 1, 0.1 + 0.2)
    assert json.loads(row["message"]) == message[0].tolist()


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"target must be one of csv, .* 'xls'"):
        exporting.export(Exported(), "xls", tmp_path / "out")
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        exporting.export(Exported(), "csv", tmp_path)
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        exporting.export(Exported(), "csv", tmp_path / "note.txt")
    with pytest.raises(StudyError, match="the export must be written, but "):
        exporting.export(Exported(), "csv", tmp_path / "note.txt" / "inside")
    study = Exported()
    study.manifest["runs"] = study.manifest["runs"][2:]
    with pytest.raises(StudyError, match="'fake' must have a run that has ended"):
        exporting.export(study, "csv", tmp_path / "out")


@pytest.mark.parametrize("target", ["tensorboard", "wandb", "mlflow"])
def test_a_missing_library_is_named_with_its_extra(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tensorboardX", "wandb", "sqlalchemy"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=rf'pip install "stalesim\[{target}\]"$'):
        exporting.export(Exported(), target, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_exports_and_says_what_it_left_out(tmp_path: Path) -> None:
    study = Exported()
    table = study.table("evaluations")
    columns = {name: table[name].to_numpy() for name in table}
    write_study(tmp_path / "study", study.manifest, {"evaluations": columns})
    command = [sys.executable, "-m", "simulator.cli", "export", str(tmp_path / "study")]
    done = subprocess.run(
        [*command, "--to", "csv"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Left out: 1 runs that are failed" in done.stderr
    assert "(2 runs)" in done.stdout
    assert (tmp_path / "study" / "export-csv" / "evaluations.csv").exists()
    again = subprocess.run(
        [*command, "--to", "csv"], capture_output=True, text=True, timeout=120
    )
    assert again.returncode == 2
    assert again.stderr.startswith("stalesim: ")
    assert "new or empty folder" in again.stderr
