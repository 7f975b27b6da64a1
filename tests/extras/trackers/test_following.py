"""A study that is followed while it is run has the numbers of an export afterwards."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stalesim.simulator import studies
from stalesim.simulator.cli.commands import app
from stalesim.simulator.extras.trackers import exporter, following
from stalesim.simulator.extras.trackers.records import RunRecord, records, values
from stalesim.simulator.files.study import Study, load, writing
from stalesim.simulator.files.study import study as trace_study
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.studies import existing
from tests.commands import wait_for
from tests.extras.trackers.test_tensorboard import events
from tests.support import write_study
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
    monkeypatch.setattr(following, "EVERY_S", 0.1)


class NotedRun:
    """Event files that are kept in `RUNS`, by the name of their run."""

    def __init__(self, folder: Path, name: str) -> None:
        del folder
        self.told = {"points": Counter(), "early": 0, "end": None}
        RUNS[name] = self.told

    def log(self, row: Any, measured: dict[str, float]) -> None:
        for name, value in measured.items():
            self.told["points"][row["commits"], row["time"], name, value] += 1

    def flush(self) -> None:
        self.told["early"] = len(self.told["points"])

    def finish(self, record: RunRecord) -> None:
        self.told["end"] = record

    def abandon(self) -> None:
        self.told["end"] = "abandoned"


RUNS: dict[str, dict[str, Any]] = {}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    RUNS.clear()
    monkeypatch.setattr(following, "RunFiles", NotedRun)
    monkeypatch.setattr(following, "check_library", lambda: None)
    return RUNS


@contextmanager
def followed(folder: Path) -> Iterator[list[Any]]:
    """Follows a study from another thread; yields what it has ended with, if it has."""
    found: list[Any] = []

    def body() -> None:
        wait_for((folder / "manifest.json").exists)
        try:
            found.append(following.follow(folder))
        except (UserError, KeyboardInterrupt) as error:
            found.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    try:
        yield found
    finally:
        thread.join()


@pytest.mark.long
@pytest.mark.parametrize("tree", [SHORT, PRIVATE], ids=["several", "private"])
def test_what_was_told_early_and_late_is_what_the_tables_say(
    tree: dict[str, Any], tmp_path: Path, runs: dict[str, Any]
) -> None:
    with followed(tmp_path / "s"):
        study = studies.simulate(tree, tmp_path / "s")
    assert any(told["early"] for told in runs.values())
    known = {record.name: record for record in records(study)}
    assert sorted(runs) == sorted(known)
    for name, record in known.items():
        told = runs[name]
        rows = record.points.to_dict("records")
        expected = Counter(
            (row["commits"], row["time"], key, value)
            for row in rows
            for key, value in values(row).items()
        )
        assert told["points"] == expected
        assert told["end"].final == record.final
        assert told["end"].tags == record.tags
        if tree is PRIVATE:
            assert any(key == "epsilon_rdp" for _, _, key, _ in expected)


@pytest.mark.long
def test_tensorboard_has_the_same_scalars_as_an_export(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    with followed(tmp_path / "s"):
        study = studies.simulate(ONE, tmp_path / "s")
    exporter.export(study, "tensorboard", tmp_path / "afterwards")
    (afterwards,) = (tmp_path / "afterwards").iterdir()
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
def test_a_study_that_goes_on_is_told_anew(
    tmp_path: Path, runs: dict[str, Any]
) -> None:
    one = {**SHORT, "replicates": 1, "stop": {"commits": 500}}
    with followed(tmp_path / "s"):
        studies.simulate(one, tmp_path / "s")
    assert len(runs) == 2
    runs.clear()
    (tmp_path / "s" / "track-tensorboard" / "old").write_text("old")
    with followed(tmp_path / "s"):
        studies.simulate({**one, "replicates": 2}, tmp_path / "s")
    assert len(runs) == 4
    assert all(told["end"] for told in runs.values())
    assert not (tmp_path / "s" / "track-tensorboard" / "old").exists()


@pytest.mark.long
def test_what_has_not_ended_is_abandoned(
    tmp_path: Path, runs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By who interrupts the tracker, and leaves the study alone."""

    def interrupted(folder: Path, **options: Any) -> Study:
        if any(told["early"] for told in runs.values()):
            raise KeyboardInterrupt
        return load(folder, **options)

    monkeypatch.setattr(trace_study, "load", interrupted)
    with followed(tmp_path / "s") as found:
        study = studies.simulate(SHORT, tmp_path / "s")
    assert study.complete
    assert isinstance(found[0], KeyboardInterrupt)
    assert "abandoned" in [told["end"] for told in runs.values()]


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.long
@pytest.mark.parametrize("call", ["log", "flush", "finish"])
def test_a_tracker_that_fails_is_one_line_and_the_study_goes_on(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: dict[str, Any]
) -> None:
    del runs
    monkeypatch.setattr(NotedRun, call, _full)
    with followed(tmp_path / "s") as found:
        study = studies.simulate(SHORT, tmp_path / "s")
    assert study.complete
    (said,) = map(str, found)
    assert (
        "track-tensorboard: the tracker's folder must be written, but No space" in said
    )
    assert "\n" not in said


def test_a_library_that_is_not_there_is_one_line_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "s"
    run = {"run": 0, "label": "base", "replicate": 0, "stop": "time"}
    write_study(folder, {"name": "x", "runs": [run]}, {})
    before = sorted(folder.iterdir())
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UserError, match=r'pip install "stalesim\[tensorboard\]"$'):
        following.follow(folder)
    assert sorted(folder.iterdir()) == before


@pytest.mark.slow
def test_the_command_tracks_and_says_where(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    folder = tmp_path / "s"
    studies.simulate({**ONE, "stop": {"commits": 1_000}}, folder)
    done = CliRunner().invoke(app, ["track", str(folder)])
    assert done.exit_code == 0, done.output
    assert f"Tracking {folder}: {folder}/track-tensorboard" in done.stdout
    assert f"Complete: {folder}" in done.stdout
    (run,) = (folder / "track-tensorboard").iterdir()
    assert len(list(events(run))) > 20
    existing.clear(folder)
