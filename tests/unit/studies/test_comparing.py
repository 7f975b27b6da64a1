"""Each variant at its own best: what is tried, what is refused, resumed and judged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.analysis import choices
from stalesim.simulator.files.study import Study, load
from stalesim.simulator.parts.errors import ScenarioError, StudyError
from stalesim.simulator.scenario import tuning as plans
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies import comparing, running
from stalesim.simulator.studies.existing import is_there
from tests.unit.studies.small import SEARCHED, PlayedStudies

RANGE: dict[str, Any] = {"from": 0.01, "to": 1, "num": 3, "scale": "log"}
PLAN: dict[str, Any] = SEARCHED | {
    "variants": {"left": {}, "right": {"algorithm": {"batch": 4}}},
    "replicates": 6,
    "compare": {
        "over": {"algorithm.step_size": RANGE},
        "objective": "test_loss",
        "budget": {"trials": 12},
        "replicates": 2,
    },
}
BEST = {"left": 0.13, "right": 3.0}
"""Step size at which losses are least."""


def played_studies(kill_at: int = 0) -> PlayedStudies:
    """The loss is `log2(step / best)**2`, and that of a step above 50 none."""

    def loss(run: Any) -> float:
        step = run.scenario.algorithm.step_size
        return np.nan if step > 50 else np.log2(step / BEST[run.variant]) ** 2

    return PlayedStudies(loss, 2.0, kill_at)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedStudies:
    found = played_studies()
    monkeypatch.setattr(running, "simulate", found)
    return found


def config(**more: Any) -> Scenario:
    tree = {**PLAN, "compare": {**PLAN["compare"], **more}}
    return validated(tree)


compare = comparing.compare


def chosen(study: Study) -> dict[str, Any]:
    found = study.manifest["scenario"]["compare"]["found"]
    return {name: each["best"]["algorithm.step_size"] for name, each in found.items()}


@pytest.mark.usefixtures("played")
def test_each_is_judged_where_neither_half_nor_twice_is_better(tmp_path: Path) -> None:
    study = compare(config(), tmp_path / "a")
    # By hand: left 0.01, 0.1, 1 and then both sides of 0.1; right from 1 to 2 and 4,
    # which is nearer to 3 (log2 of 4/3 is less than that of 3/2), and then 8.
    assert chosen(study) == {"left": 0.1, "right": 4.0}
    found = study.manifest["scenario"]["compare"]["found"]
    steps = {
        name: [trial["point"]["algorithm.step_size"] for trial in each["trials"]]
        for name, each in found.items()
    }
    assert steps == {
        "left": [0.01, 0.1, 1.0, 0.05, 0.2],
        "right": [0.01, 0.1, 1.0, 0.5, 2.0, 4.0, 8.0],
    }
    assert [found[name]["runs"] for name in found] == [10, 14]
    assert [found[name]["time"] for name in found] == [20.0, 28.0]  # 2 s a run
    used = {
        run.variant: run.scenario for run in expand(running.scenario_of(tmp_path / "a"))
    }
    assert used["left"].algorithm.step_size == 0.1
    assert (used["right"].algorithm.step_size, used["right"].algorithm.batch) == (4, 4)


@pytest.mark.usefixtures("played")
def test_no_run_that_judges_has_a_seed_of_the_tuning(tmp_path: Path) -> None:
    study = compare(config(), tmp_path / "a")
    tuned = load(tmp_path / "a" / "tuning")
    of_tuning, judging = (
        {run["seed"] for run in each.manifest["runs"]} for each in (tuned, study)
    )
    assert (len(of_tuning), len(judging)) == (2, 6)
    assert not of_tuning & judging
    assert tuned.manifest["scenario"]["claims"] == []


@pytest.mark.usefixtures("played")
def test_a_border_is_refused_and_a_larger_budget_continues(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    small = config(budget={"trials": 5})
    with pytest.raises(
        StudyError, match=r"after 5 trials the best, algorithm.learning_rate=2"
    ):
        compare(small, folder)
    assert load(folder).manifest["runs"] == []
    before = len(load(folder / "tuning").manifest["runs"])
    study = compare(config(), folder)
    assert chosen(study) == {"left": 0.1, "right": 4.0}
    assert len(load(folder / "tuning").manifest["runs"]) == before + 2 * 2
    with pytest.raises(StudyError, match="but holds another study"):
        compare(config(budget={"trials": 13}), folder)


def test_trials_of_another_comparison_are_not_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "simulate", played_studies(kill_at=3))
    with pytest.raises(KeyboardInterrupt):
        compare(config(), tmp_path / "a")
    monkeypatch.setattr(running, "simulate", played_studies())
    finer = config(over={"algorithm.step_size": {**RANGE, "num": 2}})
    with pytest.raises(StudyError, match="left was tried on another grid"):
        compare(finer, tmp_path / "a")
    less = config(budget={"trials": 3})
    with pytest.raises(StudyError, match="at the edge of the tried values"):
        compare(less, tmp_path / "a")


def test_a_shorter_list_does_not_take_over_longer_ones_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(*steps: float) -> Scenario:
        return config(over={"algorithm.step_size": [*steps]})

    monkeypatch.setattr(
        running, "simulate", played_studies(kill_at=2)
    )  # nothing was judged
    with pytest.raises(KeyboardInterrupt):
        compare(listed(0.05, 0.1, 4, 8), tmp_path / "a")
    with pytest.raises(StudyError, match="more were tried before"):
        compare(listed(0.05, 0.1), tmp_path / "a")


def test_a_moved_grid_is_refused_before_its_trials(
    tmp_path: Path, played: PlayedStudies
) -> None:
    said = rf"raise compare.budget and repeat it with --out {tmp_path / 'a'}, or move"
    with pytest.raises(StudyError, match=said):
        compare(config(budget={"trials": 5}), tmp_path / "a")
    before = len(played.calls)
    for key in ("algorithm.step_size", "algorithm.batch"):
        moved = config(over={key: {**RANGE, "from": 1, "to": 100, "num": 2}})
        with pytest.raises(StudyError, match="left was tried on another grid; choose"):
            compare(moved, tmp_path / "a")
    assert len(played.calls) == before


@pytest.mark.parametrize("kill_at", [1, 2, 3, 4, 5])
def test_a_killed_comparison_goes_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int
) -> None:
    whole, killed = played_studies(), played_studies(kill_at)
    monkeypatch.setattr(running, "simulate", whole)
    expected = compare(config(), tmp_path / "a")
    assert len(whole.calls) == 5  # grids, three waves, and the runs that judge
    monkeypatch.setattr(running, "simulate", killed)
    with pytest.raises(KeyboardInterrupt):
        compare(config(), tmp_path / "b")
    assert is_there(config(), tmp_path / "b")
    again = running.scenario_of(tmp_path / "b")
    found = compare(again, tmp_path / "b")
    assert found.manifest["scenario"] == expected.manifest["scenario"]
    assert sum(killed.calls) == sum(whole.calls) + whole.calls[kill_at - 1]


@pytest.mark.usefixtures("played")
def test_virtual_seconds_are_a_budget(tmp_path: Path) -> None:
    # A trial takes 4 virtual s: 28 s are seven trials, those that right needs.
    study = compare(config(budget={"time": 28}), tmp_path / "a")
    assert chosen(study)["right"] == 4.0
    with pytest.raises(StudyError, match=r"right .* after 6 trials the best"):
        compare(config(budget={"time": 27}), tmp_path / "b")
    with pytest.raises(StudyError, match=r"must be >= 12 virtual s, which the grid"):
        compare(config(budget={"time": 11}), tmp_path / "c")


@pytest.mark.usefixtures("played")
def test_an_end_of_a_list_is_a_border_too(tmp_path: Path) -> None:
    over = {"algorithm.step_size": [0.01, 0.1, 1]}
    with pytest.raises(StudyError, match=r"right .*learning_rate=1, .* write a range"):
        compare(config(over=over), tmp_path / "a")


@pytest.mark.usefixtures("played")
def test_where_everything_diverged_nothing_is_chosen(tmp_path: Path) -> None:
    over = {"algorithm.step_size": {**RANGE, "from": 300, "to": 900}}
    with pytest.raises(StudyError, match="every trial of left diverged"):
        compare(config(over=over), tmp_path / "a")


def test_sides_of_a_point() -> None:
    space = plans.Compare.model_validate(
        PLAN["compare"]
        | {
            "over": {
                "step": RANGE,
                "part": {"from": 0, "to": 1, "num": 3},
                "count": {"from": 1, "to": 8, "num": 4, "scale": "log", "whole": True},
                "kind": ["a", "b", "c"],
            }
        }
    ).over
    point = {"step": 0.01, "part": 0.5, "count": 1, "kind": "b"}
    found = [
        (key, [each[key] for each in points])
        for key, points in plans.sides(space, point)
    ]
    assert found == [
        ("step", [0.005, 0.007071, 0.008409, 0.00917]),
        ("step", [0.02, 0.01414, 0.01189, 0.01091]),
        ("part", [0.0, 0.25, 0.375, 0.4375]),
        ("part", [1.0, 0.75, 0.625, 0.5625]),
        ("count", [0, 0, 0, 0]),
        ("count", [2, 2, 2, 2]),
        ("kind", ["a"]),
        ("kind", ["c"]),
    ]
    assert len(plans.grid(space)) == 3 * 3 * 4 * 3


@pytest.mark.usefixtures("played")
def test_beyond_what_is_valid_it_looks_nearer(tmp_path: Path) -> None:
    # A mixing of more than 1 is none; the loss knows no mixing.
    tree = {**PLAN, "algorithm": {"kind": "fed_async", "step_size": 0.1, "batch": 8}}
    also = {"right": {"algorithm.mixing": {"from": 0.9, "to": 0.5, "num": 2}}}
    tree["compare"] = {**PLAN["compare"], "also": also, "budget": {"trials": 20}}
    study = compare(validated(tree), tmp_path / "a")
    found = study.manifest["scenario"]["compare"]["found"]["right"]
    tried = {trial["point"]["algorithm.mixing"] for trial in found["trials"]}
    # A step is 0.4: 1.3 and 1.1 are none, a quarter of a step is.
    assert tried == {0.5, 0.9, 1.0}
    assert found["limits"] == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"variants": {"left": {}}}, "at least two variants to compare, got 1"),
        ({"sweep": {"algorithm.batch": [4, 8]}}, "compare must be without sweep"),
        (
            {"tune": {"over": {"algorithm.step_size": [0.1, 0.2]}}},
            "compare must be without tune",
        ),
        (
            {"variants": {"left": {"sweep": {"algorithm.batch": [1, 2]}}, "right": {}}},
            r"compare must be without variants\.left\.sweep",
        ),
        ({"compare": {"also": {"lft": {}}}}, r"compare\.also\.lft must be a variant"),
        ({"compare": {"over": {}}}, r"compare\.also must have left, of which nothing"),
        (
            {"compare": {"budget": {"trials": 2}}},
            r"trials must be >= 3, the grid of lef",
        ),
        ({"compare": {"budget": {}}}, "exactly one of trials and time"),
        ({"compare": {"objective": "test_acuracy"}}, "must name a metric of evaluate"),
        ({"compare": {"objective": "test_loss=x"}}, "must be METRIC, METRIC=TARGET"),
        (
            {
                "evaluate": {"every": {"commits": 10}, "metrics": ["test_accuracy"]},
                "compare": {"objective": "test_accuracy=1.5"},
            },
            "must have a target >= 0 and <= 1, which test_accuracy can be, got 1.5",
        ),
        ({"compare": {"objective": "test_loss@99commits"}}, "must be within the runs"),
        (
            {"compare": {"over": {"algorithm.step_size": 3}}},
            "must be a range, or a list",
        ),
    ],
)
def test_what_is_no_comparison_is_refused(more: dict[str, Any], says: str) -> None:
    tree = {**PLAN, **more}
    tree["compare"] = {**PLAN["compare"], **more.get("compare", {})}
    with pytest.raises(ScenarioError, match=says):
        validated(tree)


def test_it_is_not_run_untuned(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"compare them by stalesim run or"):
        running.simulate(config(), tmp_path / "a")


def test_another_study_in_the_folder_is_kept(tmp_path: Path) -> None:
    played_studies()(validated({**PLAN, "compare": None}), tmp_path / "a")
    with pytest.raises(StudyError, match="but holds another study"):
        compare(config(), tmp_path / "a")


@pytest.mark.usefixtures("played")
def test_the_table_says_what_half_and_twice_lose(tmp_path: Path) -> None:
    study = compare(config(), tmp_path / "a")
    left, right = choices.table(study).to_dict("records")
    losses = [np.log2(step / 0.13) ** 2 for step in (0.1, 0.05, 0.2)]
    best, *others = (f"{loss:.4g}" for loss in losses)
    worse = [f"{loss - losses[0]:.2g} worse" for loss in losses[1:]]
    assert left == {
        "group": "left",
        "entry": "learning_rate",
        "best": "0.1",
        "at best": best,
        "below": f"0.05: {others[0]} ({worse[0]})",
        "above": f"0.2: {others[1]} ({worse[1]})",
        "trials": 5,
        "runs": 10,
        "virtual s": "20",
    }
    assert right["best"] == "4"
    assert any("at most 12 trials a variant" in note for note in choices.notes(study))
