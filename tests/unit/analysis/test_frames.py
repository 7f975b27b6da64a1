import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stalesim import analysis
from stalesim.analysis import frames
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.timelines.saved import record
from stalesim.simulator.trace import COLUMNS, StudyError
from tests.unit.analysis.studies import Curves, Fake, arrives, empty, run_of


def test_runs_that_have_ended() -> None:
    study = Fake()
    study.manifest["runs"][3]["stop"] = "incomplete"
    table = frames.runs(study)
    assert len(table) == 19
    assert 3 not in set(table["run"])
    assert frames.groups(study) == ["async", "async private", "sync", "central"]
    assert set(frames.evaluations(study)["run"]) == set(table["run"])


def test_parameters_are_columns() -> None:
    study = Curves({"async": [arrives(1), arrives(2)]})
    for run, step in zip(study.manifest["runs"], (0.1, 0.2), strict=True):
        run["parameters"] = {"algorithm.step_size": step}
        run["label"] = f"async, step_size={step}"
    table = frames.evaluations(study)
    np.testing.assert_array_equal(table["algorithm.step_size"], [0.1] * 11 + [0.2] * 11)
    assert set(table["group"]) == {"async, step_size=0.1", "async, step_size=0.2"}
    assert set(table["variant"]) == {"async"}


def test_a_study_of_which_nothing_has_ended() -> None:
    study = Fake()
    study.manifest["runs"] = [run_of(0, "async", 0, stop="incomplete")]
    with pytest.raises(StudyError, match="'fake' has no run that has ended yet; wait"):
        frames.runs(study)


@pytest.mark.parametrize("table", COLUMNS)
def test_an_empty_table_is_valid(table: str) -> None:
    assert frames.validated(empty(table), table).empty


def test_what_is_wrong_with_a_table_is_said() -> None:
    good = Fake().table("evaluations")
    assert frames.validated(good.assign(of_mine=1.0), "evaluations").shape[0] == 520
    with pytest.raises(StudyError, match="'evaluations' must have the column 'epochs'"):
        frames.validated(good.drop(columns="epochs"), "evaluations")
    words = good.assign(time=good["time"].astype(str))
    with pytest.raises(
        StudyError, match=r"'time' of table 'evaluations' must hold num"
    ):
        frames.validated(words, "evaluations")
    with pytest.raises(StudyError, match=r"table must be one of commits, .* got 'x'"):
        frames.validated(good, "x")
    stale = Fake().table("staleness")
    with pytest.raises(StudyError, match=r"'quantity' .* must hold words"):
        frames.validated(stale.assign(quantity=1), "staleness")
    for words in ("category", "object", "string"):
        frames.validated(stale.astype({"quantity": words}), "staleness")


def test_public_names_come_when_they_are_used() -> None:
    assert all(hasattr(analysis, name) for name in analysis.__all__)
    with pytest.raises(AttributeError, match=r"'stalesim.analysis' has no"):
        _ = analysis.x
    code = (
        "import stalesim.analysis, sys\n"
        "assert not {'pandas', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_numbers_of_nothing_are_missing_and_not_large(tmp_path: Path) -> None:
    """Jobs that were not applied had the commit 9223372036854775807."""
    clients = {"number": 4, "compute": {"law": "constant", "value": "m"}}
    gossip = {"kind": "gossip", "average": "all"}
    for protocol in ({"kind": "collect", "count": 2}, gossip):
        world = {"name": "w", "stop": {"time": 9.5}, "clients": clients}
        scenario = WorldScenario.model_validate(world | {"protocol": protocol})
        study = record(scenario, tmp_path / str(protocol["kind"]))
        for name in study.files:
            table = study.table(name)
            for column in table.select_dtypes("number"):
                assert not (table[column] >= 2**31 - 1).any(), (name, column)
        jobs = study.table("jobs")
        assert jobs["commit"].dtype == "Int64"
        applied = jobs["outcome"] == "APPLIED"
        assert 0 < applied.sum() < len(jobs)
        assert (jobs["commit"].notna() == applied).all()
        assert (frames.jobs(study)["staleness"].notna() == applied).all()
