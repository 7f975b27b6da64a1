"""Studies that grow until their claims are decided, by a plan that stays with them."""

from pathlib import Path
from typing import Any

import pytest

from stalesim.analysis import claims
from stalesim.simulator import studies
from stalesim.simulator.files.study import Study, StudyWarning, load
from stalesim.simulator.parts.errors import StudyError
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.studies import staged
from stalesim.simulator.studies.existing import is_there
from tests.commands import invoked
from tests.unit.studies.small import SMALL
from tests.unit.studies.test_studies import assert_same

TREE: dict[str, Any] = SMALL | {
    "stop": {"commits": 20},
    "evaluate": {"every": {"commits": 10}, "metrics": ["test_accuracy"]},
    "claims": [{"value": "base", "is": 0.5, "within": 0.1, "says": "x"}],
}


@pytest.mark.parametrize(
    ("most", "plan"),
    [
        (6, (6,)),
        (12, (12,)),
        (13, (10, 13)),
        (20, (10, 14, 20)),
        (40, (10, 14, 19, 27, 40)),
        (60, (10, 14, 19, 27, 38, 60)),
    ],
)
def test_looks_of_a_plan(most: int, plan: tuple[int, ...]) -> None:
    assert staged.looks(most) == plan


def _stages(tmp_path: Path | None = None, most: int | None = None, **more: Any) -> Any:
    scenario = Scenario.model_validate(TREE | more)
    return [
        (stage.replicates, stage.looks)
        for stage in staged.stages(scenario, tmp_path, most)
    ]


def test_stages_of_a_new_study() -> None:
    plan = (10, 14, 20)
    assert _stages() == [(n, plan) for n in plan]
    assert _stages(replicates=30)[-1] == (30, (10, 14, 19, 30))
    assert _stages(most=6) == [(6, (6,))]
    assert _stages(looks=[4, 9]) == [(4, (4, 9)), (9, (4, 9))]


ZIPPED = {"zipped": {"algorithm.step_size": [0.1, 0.2], "replicates": [3, 4]}}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"claims": []}, "must have claims to run until they are"),
        ({"most": 5}, r"must be >= 6, below.* got 5"),
        ({"sweep": ZIPPED}, "must have no sweep"),
        ({"most": 20, "looks": [4, 9]}, "must be the 9 replicates of the scenario's"),
    ],
)
def test_what_cannot_be_planned(more: dict[str, Any], says: str) -> None:
    with pytest.raises(StudyError, match=says):
        _stages(**more)


def _grow(folder: Path, decided: Any, most: int | None = None, **more: Any) -> Study:
    return studies.simulate(TREE | more, folder, until_decided=decided, most=most)


class Looks:
    """Decides at a look, or never; notes how many runs there are at each."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.seen = at, list[int]()

    def __call__(self, study: Study) -> bool:
        self.seen.append(len(study.manifest["runs"]))
        return len(self.seen) == self.at


def test_replicates_are_added_until_all_is_decided(tmp_path: Path) -> None:
    looks, heard = Looks(at=2), []
    study = studies.simulate(
        TREE, tmp_path / "s", until_decided=looks, progress=heard.append
    )
    assert looks.seen == [10, 14]
    parts = [standing.fraction for standing in heard]
    assert parts == sorted(parts)
    assert parts[-1] == pytest.approx(14 / 20)
    scenario = study.manifest["scenario"]
    assert (scenario["replicates"], scenario["looks"]) == (14, [10, 14, 20])
    whole = studies.simulate(TREE | {"replicates": 14}, tmp_path / "whole")
    assert_same(study, whole)
    # The command finds each again without --out, and takes neither for the other.
    same = Scenario.model_validate(TREE)
    fixed = same.model_copy(update={"replicates": 14})
    assert is_there(same, tmp_path / "s", looked=True)
    assert not is_there(fixed, tmp_path / "s")
    assert is_there(fixed, tmp_path / "whole")
    assert not is_there(fixed, tmp_path / "whole", looked=True)


def test_the_last_look_is_the_end(tmp_path: Path) -> None:
    study = _grow(tmp_path / "s", lambda _: False, most=6)
    assert len(study.manifest["runs"]) == 6
    assert study.complete
    again = _grow(tmp_path / "s", lambda _: False)
    assert len(again.manifest["runs"]) == 6


def test_a_study_goes_on_where_it_was(tmp_path: Path) -> None:
    _grow(tmp_path / "s", lambda _: True, most=13)
    looks = Looks()
    _grow(tmp_path / "s", looks)
    assert looks.seen == [10, 13]
    with pytest.raises(StudyError, match="must keep to its interim analyses at 10, 13"):
        _grow(tmp_path / "s", looks, most=20)


def test_resume_continues_the_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill after the first look leaves a study that is complete, and undecided."""
    _grow(tmp_path / "s", lambda _: True, looks=[5, 8])
    with pytest.warns(StudyWarning, match="no interim analysis follows without"):
        assert len(studies.resume(tmp_path / "s").manifest["runs"]) == 5
    looks = Looks()
    monkeypatch.setattr(claims, "all_decided", looks)
    assert invoked("resume", tmp_path / "s", "-j1", "--no-plots").exit_code == 0
    assert looks.seen == [5, 8]
    assert load(tmp_path / "s").manifest["scenario"]["looks"] == [5, 8]


def test_a_study_without_a_plan_gets_none_afterwards(tmp_path: Path) -> None:
    studies.simulate(TREE | {"replicates": 3}, tmp_path / "s")
    with pytest.raises(StudyError, match=r"a fixed number of replicates \(3\)"):
        _grow(tmp_path / "s", lambda _: True)


def test_the_plan_stays_with_the_study(tmp_path: Path) -> None:
    _grow(tmp_path / "s", lambda _: True, looks=[4, 6])
    # By hand, beyond the look at four, and beyond the plan: these count for nothing.
    for replicates, judged in ((5, 4), (8, 6)):
        by_hand = TREE | {"replicates": replicates}
        study = studies.simulate(by_hand, tmp_path / "s")
        assert study.manifest["scenario"]["looks"] == [4, 6]
        assert claims.evaluate(study)["replicates"].tolist() == [judged]
    resumed = studies.resume(tmp_path / "s")
    assert resumed.manifest["scenario"]["looks"] == [4, 6]


def test_claims_are_judged_by_the_plan(tmp_path: Path) -> None:
    study = _grow(tmp_path / "s", claims.all_decided, most=6)
    found = claims.evaluate(study).iloc[0]
    assert "interim analysis 1 at 6 of at most 6" in found["why"]
    assert found["corrected"] == pytest.approx(found["p"], rel=1e-3, abs=1e-12)
