"""A study that is tracked while it is run has the numbers of an export afterwards."""

import json
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from stalesim.analysis import exporting
from stalesim.analysis.exporting import Tracker, tracking
from stalesim.analysis.exporting.records import RunRecord
from stalesim.simulator import studies
from stalesim.simulator.config.errors import UserError
from stalesim.simulator.studies import overwriting
from stalesim.simulator.trace import StudyWarning, writing
from tests.unit.analysis.test_exporting_tensorboard import events
from tests.unit.analysis.test_exporting_wandb import as_dict
from tests.unit.analysis.test_exporting_wandb import told as records_of
from tests.unit.studies.watched import WATCHED

SHORT: dict[str, Any] = {
    **WATCHED,
    "replicates": 2,
    "stop": {"commits": 10_000},
    "evaluate": {"every": {"commits": 500}},
}
ONE = {**SHORT, "variants": {}, "claims": [], "replicates": 1}
PRIVATE: dict[str, Any] = {
    **SHORT,
    "replicates": 1,
    "variants": {},
    "claims": [],
    "algorithm": {
        **SHORT["algorithm"],
        "mechanism": {"multiplier": 1.0, "clip_bound": 1.0},
    },
    "privacy": {"delta": 1e-5, "accountants": ["rdp"]},
}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "PART_SECONDS", 0.05)
    monkeypatch.setattr(tracking, "EVERY_S", 0.1)


class Noted:
    """A tracker that keeps what it is told."""

    def __init__(self, folder: Path, study: str = "") -> None:
        self.runs: dict[str, dict[str, Any]] = {}

    def start(self, record: RunRecord) -> "NotedRun":
        told = {"record": record, "points": Counter(), "early": 0, "end": None}
        self.runs[record.name] = told
        return NotedRun(told)

    def close(self) -> None:
        pass


class NotedRun:
    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told

    def log(self, commits: int, time: float, measured: dict[str, float]) -> None:
        for name, value in measured.items():
            self.told["points"][commits, time, name, value] += 1

    def flush(self) -> None:
        self.told["early"] = len(self.told["points"])

    def finish(self, record: RunRecord) -> None:
        self.told["end"] = record

    def abandon(self) -> None:
        self.told["end"] = "abandoned"


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Noted:
    noted = Noted(tmp_path)
    monkeypatch.setitem(tracking.CHECKS, "noted", lambda: None)
    monkeypatch.setitem(tracking.BOARDS, "noted", lambda *_: noted)
    return noted


@pytest.mark.long
@pytest.mark.parametrize("tree", [SHORT, PRIVATE], ids=["several", "private"])
def test_what_was_told_early_and_late_is_what_the_tables_say(
    tree: dict[str, Any], tmp_path: Path, board: Noted
) -> None:
    with Tracker(tmp_path / "s", "noted"):
        study = studies.simulate(tree, tmp_path / "s")
    assert any(told["early"] for told in board.runs.values())
    records = {record.name: record for record in exporting.records.records(study)}
    assert sorted(board.runs) == sorted(records)
    for name, record in records.items():
        told = board.runs[name]
        rows = record.points.to_dict("records")
        expected = Counter(
            (row["commits"], row["time"], key, value)
            for row in rows
            for key, value in exporting.records.values(row).items()
        )
        assert told["points"] == expected
        assert told["end"].final == record.final
        assert told["end"].tags == record.tags
        assert told["record"].config == record.config
        if tree is PRIVATE:
            assert any(key == "epsilon_rdp" for _, _, key, _ in expected)


@pytest.mark.long
def test_tensorboard_has_the_same_scalars_as_an_export(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    with Tracker(tmp_path / "s", "tensorboard"):
        study = studies.simulate(ONE, tmp_path / "s")
    done = exporting.export(study, "tensorboard", tmp_path / "afterwards")
    (afterwards,) = done.folder.iterdir()
    tracked = tmp_path / "s" / "track-tensorboard" / afterwards.name

    def told(folder: Path) -> Counter[str]:
        return Counter(
            f"{event.step} {event.wall_time} {value}"
            for event in events(folder)
            for value in event.summary.value  # pyright: ignore
        )

    assert told(tracked) == told(afterwards)
    assert len(told(tracked)) > 100


@pytest.mark.long
def test_a_study_that_goes_on_is_told_anew(tmp_path: Path, board: Noted) -> None:
    one = {**SHORT, "replicates": 1, "stop": {"commits": 500}}
    with Tracker(tmp_path / "s", "noted"):
        studies.simulate(one, tmp_path / "s")
    assert len(board.runs) == 2
    board.runs.clear()
    (tmp_path / "s" / "track-noted" / "old").write_text("old")
    with Tracker(tmp_path / "s", "noted"):
        studies.simulate({**one, "replicates": 2}, tmp_path / "s")
    assert len(board.runs) == 4
    assert all(told["end"] for told in board.runs.values())
    assert not (tmp_path / "s" / "track-noted" / "old").exists()
    overwriting.clear(tmp_path / "s")


@pytest.mark.long
def test_what_is_interrupted_is_abandoned(tmp_path: Path, board: Noted) -> None:
    def hear(now: Any) -> None:
        if any(told["early"] for told in board.runs.values()):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Tracker(tmp_path / "s", "noted"):
        studies.simulate(WATCHED, tmp_path / "s", progress=hear)
    assert [told["end"] for told in board.runs.values()] == ["abandoned"]


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.long
@pytest.mark.parametrize("call", ["log", "flush", "finish"])
def test_a_tracker_that_fails_is_a_warning_and_the_study_goes_on(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, board: Noted
) -> None:
    del board
    monkeypatch.setattr(NotedRun, call, _full)
    with pytest.warns(StudyWarning) as heard, Tracker(tmp_path / "s", "noted"):
        study = studies.simulate(SHORT, tmp_path / "s")
    assert study.complete
    (said,) = (str(one.message) for one in heard)
    assert said.endswith(
        f"No space left on device; the study continues; "
        f"stalesim export {tmp_path / 's'} "
        f"--to noted writes all of it afterwards"
    )


def test_a_tracker_that_is_not_there_is_one_line_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="a tracker must be one of tensorboard, wandb"):
        Tracker(tmp_path / "s", "csv")
    for name in ("tensorboardX", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
    for target in ("tensorboard", "wandb"):
        with pytest.raises(UserError, match=rf'pip install "stalesim\[{target}\]"$'):
            Tracker(tmp_path / "s", target)
    assert not (tmp_path / "s").exists()


def test_a_study_that_is_refused_leaves_nothing(tmp_path: Path, board: Noted) -> None:
    with pytest.raises(UserError), Tracker(tmp_path / "s", "noted"):
        studies.simulate({**SHORT, "stop": {}}, tmp_path / "s")
    assert board.runs == {}
    assert not (tmp_path / "s").exists()


@pytest.mark.long
def test_wandb_has_the_same_values_as_an_export(tmp_path: Path) -> None:
    if find_spec("wandb") is None:
        pytest.skip("wandb is not installed")
    with Tracker(tmp_path / "s", "wandb"):
        study = studies.simulate(ONE, tmp_path / "s")
    exporting.export(study, "wandb", tmp_path / "afterwards")

    def told(folder: Path) -> Any:
        (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
        points, about = Counter(), {}
        for record in records_of(path):
            if record.HasField("history"):
                row = as_dict(record.history.item)
                points.update((row["commits"], *pair) for pair in row.items())
            elif record.HasField("run"):
                about |= as_dict(record.run.config.update)
            elif record.HasField("config"):
                about |= as_dict(record.config.update)
            elif record.HasField("summary"):
                about |= as_dict(record.summary.update)
        ours = {k: v for k, v in about.items() if k.startswith(("final/", "run."))}
        # W&B's own counts aside.
        mine = {k: n for k, n in points.items() if not k[1].startswith("_")}
        return mine, ours

    tracked, afterwards = (
        told(tmp_path / "s/track-wandb"),
        told(tmp_path / "afterwards"),
    )
    assert tracked == afterwards
    assert len(tracked[0]) > 100
    assert "run.stop" in tracked[1]


@pytest.mark.long
def test_the_command_tracks_and_says_where(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    (tmp_path / "one.yaml").write_text(json.dumps(ONE))
    command = [sys.executable, "-m", "stalesim", "run", "one.yaml", "-o", "s"]
    command += ["--set", "stop.commits=1000", "--no-plots", "--track"]
    wrong = subprocess.run(
        [*command, "paper"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "a tracker must be one of tensorboard, wandb, got" in wrong.stderr
    done = subprocess.run(
        [*command, "tensorboard"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "Tracking: s/track-tensorboard" in done.stdout
    (run,) = (tmp_path / "s" / "track-tensorboard").iterdir()
    assert len(list(events(run))) > 20
