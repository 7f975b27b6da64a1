import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.studies.progress import AtWork, StudyProgress
from stalesim.simulator.trace import live


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "EVERY_S", 0.02)


def _wait(for_it: Callable[[], Any]) -> Any:
    until = time.monotonic() + 20
    while not (found := for_it()):
        assert time.monotonic() < until
        time.sleep(0.01)
    return found


def test_a_beacon_says_how_far_a_study_is_and_that_it_lives(tmp_path: Path) -> None:
    assert live.progress(tmp_path) is None
    beacon = live.Beacon(tmp_path, 3)
    first = _wait(lambda: live.progress(tmp_path))
    assert first["session"] == 3
    assert "fraction" not in first  # nothing is known of it yet
    beacon.note(StudyProgress(0.25, 1, 4, "one", 80, (AtWork(2, 0.5, 30),))._asdict())
    told = _wait(lambda: (now := live.progress(tmp_path)) and "ended" in now and now)
    assert (told["fraction"], told["ended"], told["runs"]) == (0.25, 1, 4)
    ((*task, since),) = told["tasks"]
    assert task == [2, 0.5, 30]
    assert told["since"] <= since <= told["now"]
    assert told["commits"] == 80
    assert 0 < told["now"] - told["since"] < 30
    # Also where nothing new is told:
    _wait(lambda: (live.progress(tmp_path) or told)["now"] > told["now"])
    beacon.stop()
    time.sleep(0.1)
    assert not (tmp_path / live.LIVE).exists()


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / live.LIVE).write_text("a file")
    beacon = live.Beacon(tmp_path, 1)
    rows = live.LiveRows(tmp_path, "00000", 1)
    time.sleep(0.1)
    rows.add({"run": np.zeros(1, np.int32), "loss": np.zeros(1)})
    beacon.stop()
    assert live.progress(tmp_path) is None
    assert list(live.evaluations(tmp_path, 1)) == []


def test_evaluations_are_there_as_they_come_with_exact_numbers(tmp_path: Path) -> None:
    (tmp_path / live.LIVE).mkdir()
    rows = live.LiveRows(tmp_path, "00007", 2)
    values = [0.1 + 0.2, np.float32(0.1), float("nan"), float("inf"), 2.0**53]
    for number, value in enumerate(values):
        time.sleep(0.03)
        rows.add(
            {
                "run": np.full(1, 5, np.int32),
                "commits": np.full(1, number),
                "loss": np.array([value]),
            }
        )
    found = list(live.evaluations(tmp_path, 2))
    assert [row["run"] for row in found] == [5] * len(values)
    assert [row["commits"] for row in found] == [*range(len(values))]
    np.testing.assert_array_equal([row["loss"] for row in found], values)
    assert list(live.evaluations(tmp_path, 1)) == []  # of another session


def test_what_cannot_be_written_yet_is_written_later(tmp_path: Path) -> None:
    rows = live.LiveRows(tmp_path, "00000", 1)
    for number in range(3):
        if number == 2:  # as the study's own process makes it, a second after its start
            (tmp_path / live.LIVE).mkdir()
        time.sleep(0.03)
        rows.add({"run": np.zeros(1, np.int32), "commits": np.full(1, number)})
    assert [row["commits"] for row in live.evaluations(tmp_path, 1)] == [0, 1, 2]


def test_a_line_that_is_half_written_is_left_for_later(tmp_path: Path) -> None:
    folder = tmp_path / live.LIVE
    folder.mkdir()
    whole = json.dumps({"run": 0, "commits": 1})
    (folder / "00000-1.jsonl").write_text(f"{whole}\n{{half\n{whole[:9]}")
    assert list(live.evaluations(tmp_path, 1)) == [{"run": 0, "commits": 1}]
    (folder / live.PROGRESS).write_text('{"session": 1')
    assert live.progress(tmp_path) is None
