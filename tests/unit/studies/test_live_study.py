"""What can be read of a study while it is run, and what its progress tells."""

import time
from pathlib import Path

import pandas as pd
import pytest

from stalesim.simulator import studies
from stalesim.simulator.files.study import load, writing
from stalesim.simulator.studies.progress import StudyProgress
from tests.unit.studies.watched import WATCHED

EVERY_100 = {"every": {"commits": 100}}


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_evaluations_of_a_run_under_way_are_those_of_its_table(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "PART_SECONDS", 0.5)
    folder, seen, heard, looked = tmp_path / "s", {}, [], [0.0]

    def hear(now: StudyProgress) -> None:
        heard.append(now)
        if time.monotonic() - looked[0] < 0.5:
            return
        looked[0] = time.monotonic()
        for row in load(folder, quietly=True).so_far().to_dict("records"):
            seen[row["run"], row["commits"]] = row

    study = studies.simulate(WATCHED, folder, jobs=jobs, progress=hear)
    if jobs == 1:  # other processes take the half minute that they have
        table = study.table("evaluations")
        shown = pd.DataFrame(seen.values()).sort_values(
            ["run", "time"], ignore_index=True
        )
        keys = ["run", "commits"]
        same = shown[keys].merge(table, on=keys, how="left", validate="one_to_one")
        assert len(shown) > 10
        pd.testing.assert_frame_equal(shown, same[list(shown)], check_exact=True)
    assert study.so_far().empty
    made = [now.commits for now in heard]
    assert made == sorted(made)
    assert made[-1] == 2 * 80_000
    assert {*(now.at for now in heard)} <= {"", "fast", "slow"}
    assert any(now.at for now in heard)
    assert any(0.05 < now.fraction < 0.45 for now in heard)


def test_each_evaluation_of_a_buffer_of_rows_is_heard_of(tmp_path: Path) -> None:
    short = {**WATCHED, "stop": {"commits": 400}, "evaluate": EVERY_100}
    for key in ("variants", "claims", "engine"):
        del short[key]
    heard: list[StudyProgress] = []
    studies.simulate(short, tmp_path / "s", progress=heard.append)
    assert {(now.commits, now.fraction) for now in heard} >= {
        (100, 0.25), (200, 0.5), (300, 0.75), (400, 1.0),
    }  # fmt: skip
