"""What a sweep may be: ranges, lists together, random draws, sub-trees, mistakes."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from stalesim.simulator.config.base import LocatedError
from stalesim.simulator.scenario import grid
from stalesim.simulator.scenario.reading import loads
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


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"zipped": {"a": [1, 2], "replicates": [1, 0]}}, "must be whole numbers >= 1"),
        ({"zipped": {"a": [1, 2], "replicates": [1, 2.5]}}, "must be whole numbers"),
        ({"zipped": {"a": [1, 1], "replicates": [1, 2]}}, "must have different points"),
    ],
)
def test_replicates_of_points_that_cannot_be(
    sweep: dict[str, Any], message: str
) -> None:
    with pytest.raises(LocatedError, match=message):
        grid.points(sweep, 1)


def test_replicates_are_no_axis() -> None:
    with pytest.raises(LocatedError, match="replicates must not be swept"):
        expand(study(sweep={"replicates": [1, 2]}))


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


MISTAKES = {
    "no list": ({"a": 3}, "sweep.a must be a list of values, or a range, got 3", "a"),
    "one end": ({"a": {"from": 1, "num": 3}}, "sweep.a.to is missing", "a"),
    "typo": (
        {"a": {"from": 1, "to": 2, "number": 3}},
        "sweep.a.number is not a known key; did you mean 'num'?",
        "a",
    ),
    "one value": ({"a": {"from": 1, "to": 2, "num": 1}}, "sweep.a.num must be", "a"),
    "equal ends": (
        {"a": {"from": 1, "to": 1, "num": 2}},
        "sweep.a must have different ends",
        "a",
    ),
    "log of zero": (
        {"a": {"from": 0, "to": 1, "num": 3, "scale": "log"}},
        "sweep.a.from and to must be > 0 on a logarithmic scale, got 0 and 1",
        "a",
    ),
    "rounded twice": (
        {"a": {"from": 1, "to": 3, "num": 9, "whole": True}},
        "sweep.a must have different values, got 1 twice; lower num",
        "a",
    ),
    "zipped list": ({"zipped": [1]}, "sweep.zipped must give keys lists", "zipped"),
    "zipped number": ({"zipped": {"a": 1}}, "sweep.zipped.a must be a list", "zipped"),
    "unequal": (
        {"zipped": {"a": [1, 2], "b": [1]}},
        "sweep.zipped must have lists of the same length, but a has 2, b has 1",
        "zipped",
    ),
    "zipped twice": (
        {"zipped": {"a": [1, 1], "b": [2, 2]}},
        "sweep.zipped must have different points, got a = 1, b = 2 twice",
        "zipped",
    ),
    "no num": (
        {"random": {"a": {"law": "norm"}}},
        "sweep.random must have num",
        "random",
    ),
    "nothing drawn": ({"random": {"num": 2}}, "sweep.random must have a key", "random"),
    "no law": (
        {"random": {"num": 2, "a": 3}},
        "sweep.random.a must be a law or a list, got 3",
        "random",
    ),
    "unknown law": (
        {"random": {"num": 2, "a": {"law": "logunifrom"}}},
        "sweep.random.a.law must be",
        "random",
    ),
    "unknown parameter": (
        {"random": {"num": 2, "a": {"law": "gamma", "b": 1}}},
        "sweep.random.a.b is not a parameter of the law 'gamma'",
        "random",
    ),
    "impossible law": (
        {"random": {"num": 2, "a": {"law": "gamma", "a": -1}}},
        "sweep.random.a must be a law that exists, but {",
        "random",
    ),
    "expression": (
        {"random": {"num": 2, "a": {"law": "norm", "loc": "2*m"}}},
        "sweep.random.a must have numbers alone, got loc: '2*m'",
        "random",
    ),
    "drawn twice": (
        {"random": {"num": 3, "a": [1, 2]}},
        "sweep.random must have different points, got a = ",
        "random",
    ),
    "swept twice": (
        {"a": [1, 2], "zipped": {"a": [1, 2]}},
        "sweep must have a once, got it twice",
        "zipped",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_told_with_its_place(case: str) -> None:
    sweep, said, key = MISTAKES[case]
    with pytest.raises(LocatedError) as caught:
        grid.points(sweep, 7)
    assert str(caught.value).startswith(said), str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.keys[:2] == ("sweep", key)


def test_a_mistake_in_a_file_names_the_line() -> None:
    text = """\
name: test
problem: {data: {kind: digits}, partition: {kind: iid, clients: 5}}
clients: {compute: {law: expon}}
protocol: {kind: asynchronous}
algorithm: {kind: sgd, step_size: 0.1, batch: 8}
stop: {commits: 10}
evaluate: {every: {commits: 5}}
sweep:
  zipped:
    algorithm.step_size: [0.1, 0.2]
    algorithm.batch: [8, -1]
"""
    with pytest.raises(Exception, match=r"^f:11: sweep of algorithm.batch = -1"):
        loads(text, "f")
