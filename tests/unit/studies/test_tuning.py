"""A search of the best values: what is proposed, found and resumed."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.analysis import racing
from stalesim.simulator import studies
from stalesim.simulator.files.study import load
from stalesim.simulator.parts.errors import StudyError, UserError
from stalesim.simulator.scenario import tuning as plans
from stalesim.simulator.studies import tuning
from stalesim.simulator.studies.progress import StudyProgress, silent
from tests.unit.studies.small import SEARCHED, PlayedStudies

OPTIMUM = 0.1
"""Step size at which the losses of `played` are least."""
PLAN: dict[str, Any] = SEARCHED | {"replicates": 8}
OVER = {"algorithm.step_size": {"from": 0.001, "to": 1, "scale": "log"}}


def played(diverges: float = 9.0, kill_at: int = 0) -> PlayedStudies:
    """Returns studies in which steps above a limit diverge.

    The loss is `(log10(step / 0.1))**2 + 0.01 noise`, the noise by seed alone.
    """

    def loss(run: Any) -> float:
        step = run.parameters["algorithm.step_size"]
        noise = np.random.default_rng(run.seed).normal()
        known = np.log10(step / OPTIMUM) ** 2 + 0.01 * noise
        return np.nan if step > diverges else known

    return PlayedStudies(loss, kill_at=kill_at)


def search(
    path: Path, studies: PlayedStudies | None = None, **more: Any
) -> tuning.Tuned:
    report = more.pop("report", silent)
    config = tuning.planned(PLAN, OVER, **more)
    execute = partial(studies or played(), path=path)
    return tuning.TrialSearch(config, path, execute, report).end()


def test_a_known_optimum_is_found(tmp_path: Path) -> None:
    found = search(tmp_path / "a", trials=30)
    best = racing.best(found.study)
    # Losses within a tenth of a decade of the optimum are below 0.01.
    assert abs(np.log10(best.parameters["algorithm.learning_rate"] / OPTIMUM)) < 0.1
    assert best.value.low <= 0.01
    assert found.tried == 30
    assert found.runs == 31 * 8  # the winner has 8 more


def test_all_trials_have_the_same_seeds_and_the_winner_new_ones(tmp_path: Path) -> None:
    found = search(tmp_path / "a", trials=12)
    seeds: dict[str, list[int]] = {}
    for run in found.study.manifest["runs"]:
        seeds.setdefault(run["label"], []).append(run["seed"])
    longest = max(seeds.values(), key=len)
    assert len(longest) == len(set(longest)) == 16
    assert all(mine == longest[: len(mine)] for mine in seeds.values())
    assert sorted(map(len, seeds.values()))[-2] == 8


def test_what_diverges_is_not_the_best(tmp_path: Path) -> None:
    found = search(tmp_path / "a", played(diverges=0.2), trials=25)
    best = racing.best(found.study)
    assert best.parameters["algorithm.learning_rate"] <= 0.2
    assert "diverged" in {run["stop"] for run in found.study.manifest["runs"]}


def test_a_search_of_which_all_diverges_says_so(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="every trial diverged, or never reached"):
        search(tmp_path / "a", played(diverges=0.0), trials=4)


@pytest.mark.parametrize("kill_at", range(1, 5))
def test_an_interrupted_search_goes_the_same_way(tmp_path: Path, kill_at: int) -> None:
    whole, again = played(), played()
    expected = search(tmp_path / "a", whole, trials=17)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "b", played(kill_at=kill_at), trials=17)
    found = search(tmp_path / "b", again, trials=17)
    assert found.study.manifest["runs"] == expected.study.manifest["runs"]
    assert found[1:] == expected[1:]
    # What had ended is not run again.
    assert again.calls == whole.calls[kill_at - 1 :]


def test_a_search_that_goes_on_counts_what_there_was(tmp_path: Path) -> None:
    heard: list[StudyProgress] = []
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "study", played(kill_at=2), trials=6, report=heard.append)
    before = len(load(tmp_path / "study").manifest["runs"])
    assert before
    for session, kept in ((heard, 0), ([], before)):
        if not session:
            search(tmp_path / "study", trials=6, report=session.append)
        # One denominator: 8 replicates of 6 trials, and as many new ones of the best.
        assert {(now.runs, now.at_most) for now in session} == {(8 * 7, True)}
        assert session[0].ended == kept
        for earlier, later in pairwise(session):
            assert 0 <= later.ended - earlier.ended <= 1
            assert later.commits >= earlier.commits
            assert later.fraction >= earlier.fraction


def test_a_finished_search_runs_nothing(tmp_path: Path) -> None:
    search(tmp_path / "a", trials=11)
    again = played()
    search(tmp_path / "a", again, trials=11)
    assert again.calls == []


def test_a_folder_of_another_search_is_refused(tmp_path: Path) -> None:
    search(tmp_path / "a", trials=4)
    with pytest.raises(StudyError, match="must be new, or hold this very search"):
        search(tmp_path / "a", trials=5)


def test_trials_that_are_not_proposed_here_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search(tmp_path / "a", trials=4)

    def other(self: Any, number: int) -> list[str]:
        self._asked = []
        return [plans.name({"algorithm.step_size": 0.5 + i}) for i in range(number)]

    monkeypatch.setattr(tuning.Proposals, "ask", other)
    with pytest.raises(StudyError, match="is not proposed here; install the Optuna"):
        search(tmp_path / "a", trials=4)


def test_proposals_depend_on_seed_and_results_alone() -> None:
    tune = plans.Tune.model_validate(
        {
            "over": {
                **OVER,
                "algorithm.batch": {"from": 4, "to": 64, "whole": True, "scale": "log"},
                "problem.model": [{"kind": "linear"}, {"kind": "mlp", "hidden": 8}],
            }
        }
    )

    def proposed(seed: int, loss: Callable[[int], float]) -> list[str]:
        found, asked = tuning.Proposals(tune, seed), []
        for number in tuning.waves(22):
            names = found.ask(number)
            found.tell({name: loss(len(asked) + i) for i, name in enumerate(names)})
            asked += names
        return asked

    one = proposed(1, float)
    assert one == proposed(1, float)
    assert one[:10] == proposed(1, lambda i: -float(i))[:10]
    assert one[10:] != proposed(1, lambda i: -float(i))[10:]
    assert one != proposed(2, float)
    assert len(one) == 22


def test_waves_of_trials() -> None:
    assert tuning.waves(7) == [7]
    assert tuning.waves(22) == [10, 5, 5, 2]


VARIANTS = {"variants": {"a": {}, "b": {"protocol": {"kind": "synchronous"}}}}


@pytest.mark.parametrize(
    ("tree", "options", "message"),
    [
        ({}, {"over": {}}, "must define what to tune; give --over"),
        (VARIANTS, {}, "must be tuned one variant at a time, but has a, b"),
        (VARIANTS, {"variant": "c"}, "--variant must be a variant of the scenario"),
        ({"sweep": {"algorithm.batch": [1, 2]}}, {}, "must have no sweep to be tuned"),
        ({}, {"over": {"algorithm.stepsize": [1, 2]}}, "tune.over of algorithm.steps"),
        ({}, {"over": {"algorithm.batch": [8, -1]}}, "tune.over of algorithm.batch"),
        ({}, {"over": {"seed": [1, 2]}}, "seed must not be swept"),
        ({}, {"over": {"algorithm.batch": 3}}, "must be two ends, or a list to choose"),
        ({}, {"objective": "test_accuracy"}, "tune.objective must name a metric of"),
        ({}, {"objective": "test_loss@30commits"}, "which end at stop.commits: 20"),
    ],
)
def test_what_cannot_be_tuned(
    tree: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        tuning.planned(PLAN | tree, **({"over": OVER} | options))


def test_a_variant_is_tuned_alone() -> None:
    config = tuning.planned(PLAN | VARIANTS, OVER, variant="b")
    assert list(config.variants) == ["b"]


def test_runs_of_the_program_itself(tmp_path: Path) -> None:
    """A step of a millionth learns nothing: the other one must win."""
    tree = PLAN | {"replicates": 3, "stop": {"commits": 40}}
    tree = tree | {"algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 8}}
    over = {"algorithm.step_size": [1e-6, 0.3]}
    found = studies.tune(tree, over, tmp_path / "a", trials=4)
    assert racing.best(found.study).parameters == {"algorithm.learning_rate": 0.3}
    assert found.tried == 2
    assert found.study.complete
    counts = [run["label"] for run in load(tmp_path / "a").manifest["runs"]]
    assert {label: counts.count(label) for label in counts} == {
        "base, learning_rate=1e-06": 3,
        "base, learning_rate=0.3": 6,
    }
    # Resumed as any study, it has nothing left to do.
    before = (tmp_path / "a" / "manifest.json").read_bytes()
    again = studies.tune(tree, over, tmp_path / "a", trials=4)
    assert again.runs == found.runs == 9
    assert (tmp_path / "a" / "manifest.json").read_bytes() == before
