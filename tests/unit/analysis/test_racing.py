"""Trials against each other: what each came to, and the best of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import racing
from stalesim.simulator.files.study import StudyError
from stalesim.simulator.scenario import tuning
from tests.unit.analysis.studies import Study, evaluations_of, manifest_of, run_of


def study(runs: list[dict[str, Any]], objective: str) -> Any:
    """Returns a study of trials, evaluated after 5 and 10 s, or commits."""
    found = Study()
    found.folder = Path("race")  # pyright: ignore
    found.manifest = manifest_of(
        tune={"over": {"x": [1, 2, 3]}, "objective": objective},
        evaluate={"metrics": ["test_loss", "test_accuracy"]},
        replicates=2,
    )
    frames = []
    for number, run in enumerate(runs):
        own = {"variant": "base", "parameters": {"x": run["x"]}, "virtual_s": 10.0}
        own |= {"stop": "time", "stop_reason": "", "commits": 10}
        own |= {k: v for k, v in run.items() if k in own}
        label = f"base, x={run['x']}"
        found.manifest["runs"].append(run_of(number, label, run["replicate"], **own))
        times = 5.0 * np.arange(1, 1 + len(run["curve"]))
        frame = evaluations_of(number, times, test_loss=np.array(run["curve"], float))
        frames.append(frame.assign(commits=times.astype(int)))
    found.tables = {"evaluations": pd.concat(frames, ignore_index=True)}
    return found


def curves(x: int, *of_replicates: list[float], **more: Any) -> list[dict[str, Any]]:
    return [
        {"x": x, "replicate": i, "curve": curve, **more}
        for i, curve in enumerate(of_replicates)
    ]


@pytest.mark.parametrize(
    ("objective", "values"),
    [
        ("test_loss", [2.0, 3.0]),
        ("test_loss@9.5s", [4.0, 5.0]),
        ("test_loss@10commits", [2.0, 3.0]),
        # Evaluated at 5 and 10 s; the second replicate was never there.
        ("test_loss=2.5", [10.0, np.inf]),
    ],
)
def test_scores(objective: str, values: list[float]) -> None:
    runs = curves(1, [4.0, 2.0], [5.0, 3.0]) + curves(2, [1.0], stop="diverged")
    one, two = racing.scores(study(runs, objective)).items()
    assert [one[0], two[0]] == [tuning.name({"x": x}) for x in (1, 2)]
    np.testing.assert_array_equal(one[1], values)
    np.testing.assert_array_equal(two[1], [np.inf])


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ("test_loss", "test_loss"),
        ("test_loss=2.5", "virtual s to test_loss 2.5"),
        ("test_loss@5s", "test_loss at 5 s"),
        ("test_loss@9.5s", "test_loss at 5 s, the last evaluation by 9.5 s"),
    ],
)
def test_a_search_says_when_it_evaluated(objective: str, words: str) -> None:
    runs = curves(1, [4.0, 2.0]) + curves(2, [1.0], stop="diverged")
    assert racing.in_words(study(runs, objective)) == words


@pytest.mark.parametrize(
    ("over", "value", "words"),
    [
        ({"from": 0.01, "to": 1, "scale": "log"}, 0.94, "x=0.94 of 0.01 to 1"),
        ({"from": 0.01, "to": 1, "scale": "log"}, 0.7, ""),
        ({"from": 16, "to": 2, "whole": True}, 2, "x=2 of 2 to 16"),
        ([8, 32, 16], 32, "x=32 of 8 to 32"),
        ([8, 32, 16], 16, ""),
        ([8, 32], 32, ""),
        (["a", "b", "c"], "a", ""),
    ],
)
def test_a_best_value_at_a_border_is_named(over: Any, value: Any, words: str) -> None:
    found = study(curves(1, [4.0, 2.0]), "test_loss")
    found.manifest["scenario"]["tune"]["over"] = {"x": over}
    assert racing.borders(found, {"x": value}) == words


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("test_loss@11s", "ended at 10 s"),
        ("test_loss@11commits", "ended at 10 commits"),
        ("test_loss@2s", "first evaluated at 5 s"),
    ],
)
def test_an_instant_must_be_within_the_run(objective: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        racing.scores(study(curves(1, [4.0, 2.0]), objective))


def test_the_best_is_told_by_its_new_replicates_alone() -> None:
    known = curves(1, [0.0, 1.0], [0.0, 1.0], [0.0, 2.0], [0.0, 4.0])
    found = racing.best(study(known + curves(2, [9.0], [9.0]), "test_loss"))
    assert found.parameters == {"x": 1}
    assert (found.value.mean, found.fresh, found.diverged) == (3.0, 2, 0)
    # The 97.5 % quantile of t with one degree of freedom is 12.706, the error 1.
    assert found.value.high == pytest.approx(3 + 12.7062, abs=1e-3)


def test_what_has_failed_or_is_under_way_is_no_result() -> None:
    runs = curves(1, [4.0, 2.0], [4.0, 2.0])
    with pytest.raises(StudyError, match="must be a search that has ended"):
        racing.best(study(runs, "test_loss"))
    runs += curves(2, [], stop="failed", stop_reason="no memory")
    with pytest.raises(StudyError, match=r"x=2 \(replicate 0\) failed: no memory"):
        racing.scores(study(runs, "test_loss"))
