"""What a study tells of itself while it is run."""

import time
from pathlib import Path

import pandas as pd
import pytest

from stalesim.simulator import studies
from stalesim.simulator.studies.progress import StudyProgress
from stalesim.simulator.trace import live
from tests.unit.studies.watched import WATCHED

EVERY_100 = {"every": {"commits": 100}}


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_evaluations_of_a_run_under_way_are_those_of_its_table(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if jobs == 1:  # other processes take the second that they have
        monkeypatch.setattr(live, "EVERY_S", 0.05)
    folder, seen, heard, looked = tmp_path / "s", {}, [], [0.0]

    def hear(now: StudyProgress) -> None:
        heard.append(now)
        if time.monotonic() - looked[0] < 0.3:
            return
        looked[0] = time.monotonic()
        for row in live.evaluations(folder, 1):
            seen[row["run"], row["commits"]] = row

    study = studies.simulate(WATCHED, folder, jobs=jobs, progress=hear)
    assert len(seen) > 10
    table = study.table("evaluations")
    shown = pd.DataFrame(seen.values()).sort_values(["run", "time"], ignore_index=True)
    keys = ["run", "commits"]
    same = shown[keys].merge(table, on=keys, how="left", validate="one_to_one")
    pd.testing.assert_frame_equal(
        shown, same[list(shown)], check_dtype=False, check_exact=True
    )
    assert not (folder / live.LIVE).exists()
    made = [now.commits for now in heard]
    assert made == sorted(made)
    assert made[-1] == 2 * 80_000
    under_way = [now for now in heard if now.tasks]
    assert {task.task for now in under_way for task in now.tasks} == {0, 1}
    assert any(0.05 < task.fraction < 0.95 for now in under_way for task in now.tasks)


def test_the_standing_is_noted_and_goes_when_the_study_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "EVERY_S", 0.05)
    folder, found = tmp_path / "s", []

    def hear(now: StudyProgress) -> None:
        if (told := live.progress(folder)) and "fraction" in told:
            found.append(told)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        studies.simulate(WATCHED, folder, progress=hear)
    assert found[0]["session"] == 1
    assert 0 <= found[0]["fraction"] < 1
    assert not (folder / live.LIVE).exists()


def test_each_evaluation_of_a_buffer_of_rows_is_heard_of(tmp_path: Path) -> None:
    short = {**WATCHED, "stop": {"commits": 400}, "evaluate": EVERY_100}
    for key in ("variants", "claims", "engine"):
        del short[key]
    heard: list[StudyProgress] = []
    studies.simulate(short, tmp_path / "s", progress=heard.append)
    assert {(now.commits, now.fraction) for now in heard} >= {
        (100, 0.25), (200, 0.5), (300, 0.75), (400, 1.0),
    }  # fmt: skip
