"""What a sweep may be: ranges, lists together, random draws, sub-trees, mistakes."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from stalesim.simulator.scenario import grid
from stalesim.simulator.scenario.study import VariantError, expand
from tests.unit.scenario.test_study import study


def values(sweep: dict[str, Any], seed: int = 7) -> list[dict[str, Any]]:
    return [
        {key: each.value for key, each in point.items()}
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
        "base, compute=expon",
        "base, compute=gamma",
    ]


def test_swept_values_may_have_names() -> None:
    laws = {
        "exponential": {"law": "expon"},
        "Pareto 1.5": {"law": "pareto", "b": 1.5, "scale": 1},
    }
    sweep = {
        "clients.compute": laws,
        "zipped": {"algorithm.step_size": {"low": 0.1, "high": 1}, "stop.time": [1, 2]},
    }
    runs = expand(study(replicates=1, sweep=sweep))
    assert [run.label for run in runs[:2]] == [
        "base, compute=exponential, learning_rate=low, time=1",
        "base, compute=exponential, learning_rate=high, time=2",
    ]
    assert runs[-1].parameters["clients.compute"] == "Pareto 1.5"
    assert runs[-1].scenario.clients.compute.parameters == {"b": 1.5}
    assert runs[-1].scenario.algorithm.step_size == 1


def test_parts_without_names_are_called_by_what_tells_them_apart() -> None:
    def told(*parts: dict[str, Any]) -> list[str]:
        points = grid.points({"key": list(parts)}, 7)
        return [str(point["key"].name) for point in points]

    pareto = {"law": "pareto", "scale": 1, "b": 1.5}
    expon = {"law": "expon", "scale": 1}
    assert told(expon, pareto, pareto | {"b": 2.5}) == [
        "expon",
        "pareto b=1.5",
        "pareto b=2.5",
    ]
    corners = [pareto | {"b": b, "scale": s} for b in (1, 2) for s in (3, 4)]
    assert told(*corners)[1] == "pareto scale=4 b=1"
    assert told({"kind": "t"}, {"kind": "t", "t": 2}) == ["t", "t t=2"]
    mixed = [{"law": "mixture", "of": [expon, pareto], "weights": w} for w in (1, 2)]
    assert told(*mixed) == ["mixture weights=1", "mixture weights=2"]
    (nested,) = told({"law": "mixture", "of": [expon]}, {"law": "mixture"})[:1]
    assert nested == "mixture of=[expon(scale=1)]"


def test_a_name_means_the_same_in_all_variants() -> None:
    key, tree = "clients.compute", {"law": "expon"}
    one, other = ({key: {"x": tree | {"scale": scale}}} for scale in (1, 2))
    with pytest.raises(VariantError, match="a name for one value alone, got 'x'"):
        expand(study(variants={"a": {"sweep": one}, "b": {"sweep": other}}))
    expand(study(variants={"a": {"sweep": one}, "b": {"sweep": one}}))
    with pytest.raises(VariantError, match="must be a list of values, names with val"):
        expand(study(sweep={key: tree}))
