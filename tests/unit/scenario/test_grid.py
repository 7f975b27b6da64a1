"""What a sweep may be: ranges, lists together, random draws, sub-trees, mistakes."""

from typing import Any

import numpy as np
from scipy import stats

from stalesim.simulator.scenario import grid
from stalesim.simulator.scenario.study import expand
from tests.unit.scenario.test_study import study


def values(sweep: dict[str, Any], seed: int = 7) -> list[dict[str, Any]]:
    return [
        {key: value for key, (value, _) in point.items()}
        for point in grid.points(sweep, seed)
    ]


def test_lists_and_ranges_make_a_grid_whose_last_key_is_fastest() -> None:
    sweep = {"a.b": [1, 2], "c": {"from": 0, "to": 1, "num": 3}}
    assert values(sweep) == [{"a.b": b, "c": c} for b in (1, 2) for c in (0, 0.5, 1)]
    assert values({}) == [{}]


def test_a_range_on_a_logarithmic_scale_has_equal_ratios() -> None:
    sweep = {"c": {"from": 0.01, "to": 1, "num": 5, "scale": "log"}}
    assert [v["c"] for v in values(sweep)] == [0.01, 0.03162, 0.1, 0.3162, 1]
    whole = {"c": {"from": 1, "to": 64, "num": 4, "scale": "log", "whole": True}}
    assert [v["c"] for v in values(whole)] == [1, 4, 16, 64]
    down = {"c": {"from": 3, "to": 1, "num": 3}}
    assert [v["c"] for v in values(down)] == [3, 2, 1]


def test_a_whole_number_among_fractions_is_none() -> None:
    """A batch of 1 is one sample, and one of 1.0 is refused, which may mean all."""
    shares = grid.Range.model_validate({"from": 0.5, "to": 1, "num": 2}).values()
    assert list(map(type, shares)) == [float, float]
    counts = grid.Range.model_validate({"from": 1, "to": 3, "num": 3}).values()
    assert list(map(type, counts)) == [int, int, int]


def test_zipped_lists_are_stepped_through_together() -> None:
    sweep = {
        "a": ["x", "y"],
        "zipped": {"b": [1, 1, 2], "c": {"from": 1, "to": 3, "num": 3}},
    }
    steps = [(1, 1), (1, 2), (2, 3)]
    assert values(sweep) == [
        {"a": a, "b": b, "c": c} for a in ("x", "y") for b, c in steps
    ]


def test_zipped_points_may_have_replicates_of_their_own() -> None:
    zipped = {"algorithm.step_size": [0.1, 0.2, 0.3], "replicates": [1, 3, 2]}
    runs = expand(study(sweep={"zipped": zipped}, replicates=7))
    assert [run.replicate for run in runs] == [0, 0, 1, 2, 0, 1]
    assert [run.parameters for run in runs][:2] == [
        {"algorithm.step_size": 0.1},
        {"algorithm.step_size": 0.2},
    ]
    assert runs[0].seed == runs[1].seed


RANDOM = {
    "num": 400,
    "step": {"law": "loguniform", "a": 0.001, "b": 1},
    "batch": {"law": "randint", "low": 8, "high": 65},
    "kind": ["p", "q", "r"],
}


def test_random_draws_follow_their_laws() -> None:
    drawn = values({"random": RANDOM})
    steps = np.array([point["step"] for point in drawn])
    # The chance of a smaller p-value than 0.001 is 0.001; the seed is fixed.
    assert stats.kstest(steps, stats.loguniform(0.001, 1).cdf).pvalue > 0.001
    batches = [point["batch"] for point in drawn]
    assert all(isinstance(batch, int) and 8 <= batch < 65 for batch in batches)
    assert len({*batches}) > 50
    counts = [sum(p["kind"] == kind for p in drawn) for kind in "pqr"]
    assert stats.chisquare(counts).pvalue > 0.001
    correlation = np.corrcoef(np.log(steps), batches)[0, 1]
    assert abs(correlation) < 4 / np.sqrt(400)


def test_draws_stay_when_there_are_more_of_them_or_of_keys() -> None:
    few = values({"random": RANDOM | {"num": 5}})
    assert few == values({"random": RANDOM})[:5]
    other = {"other": {"law": "norm"}, **RANDOM, "num": 5}
    assert [p | {"other": 0} for p in few] == [
        p | {"other": 0} for p in values({"random": other})
    ]
    assert few != values({"random": RANDOM | {"num": 5}}, seed=8)


def test_a_swept_law_replaces_a_whole_sub_tree() -> None:
    laws = [{"law": "expon", "scale": 2}, {"law": "gamma", "a": 2, "scale": 1}]
    runs = expand(study(replicates=1, sweep={"clients.compute": laws}))
    found = [run.scenario.clients.compute.law for run in runs]
    assert found == ["expon", "gamma"]
    assert [run.label for run in runs] == [
        "base, compute=expon(scale=2)",
        "base, compute=gamma(a=2 scale=1)",
    ]
