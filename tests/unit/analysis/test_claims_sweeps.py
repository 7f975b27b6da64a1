"""Claims along a sweep and along a run: rising, steady, critical, slopes, bounds."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from stalesim.analysis import claims
from stalesim.analysis.claims.measured import Measured, measure
from stalesim.simulator.scenario.claims.base import read
from tests.unit.analysis.studies import Decays, Grid, judged

GAP = "optimality_gap"


def _over(values: dict[Any, Any], **claim: Any) -> pd.Series:
    """Judges a claim on final values at each value of `x`; words are kinds of laws."""
    points = [
        ("a", {"x": {"law": x} if isinstance(x, str) else x}, finals)
        for x, finals in values.items()
    ]
    return judged(Grid(points), over="x", **claim)


UP = {1: [0.5, 0.6, 0.55] * 3, 2: [0.7, 0.8, 0.76] * 3, 3: [0.9, 0.95, 0.9] * 3}
DOWN = {4 - x: finals for x, finals in UP.items()}
STEP_DOWN = {1: [0.5, 0.51] * 4, 2: [0.4, 0.42] * 4, 3: [0.9, 0.92] * 4}
STEP_UP = {1: [0.9, 0.92] * 4, 2: [0.4, 0.42] * 4, 3: [0.5, 0.52] * 4}
FLAT, SAME = [0.5, 0.51] * 4, [0.5] * 8
RISES: list[tuple[dict[Any, Any], dict[str, Any], str, str]] = [
    # Median of 0.2, 0.15 and 0.14; of the steepest fall 0.2.
    (UP, {}, "holds", "smallest rise, 2 to 3: 0.15"),
    (UP, {"direction": "falling"}, "does not hold", "smallest fall, 1 to 2: -0.2"),
    (DOWN, {}, "does not hold", "smallest rise, 2 to 3: -0.2"),
    (DOWN, {"direction": "falling"}, "holds", "smallest fall, 1 to 2: 0.15"),
    # In the order of the alphabet the step to `b` would go down.
    (dict(zip("bca", UP.values(), strict=True)), {}, "holds", "smallest rise, c to a"),
    (STEP_DOWN, {}, "does not hold", "smallest rise, 1 to 2: -0.0950 [-0.1000, -0.09"),
    (STEP_DOWN, {"within": 0.15}, "holds", ""),
    (STEP_UP, {"direction": "falling"}, "does not hold", "smallest fall, 2 to 3: -0.1"),
    # As truths of 1, 2, 1.9, 3 are: a slope over ranks said that they rise.
    (
        {1: [0.1] * 8, 2: FLAT, 3: FLAT[::-1], 4: [0.9] * 8},
        *({}, "undecided", "smallest rise, 2 to 3: 0.000 [-0.010, 0.010]"),
    ),
    # What never falls by much need not rise.
    ({1: SAME, 2: SAME, 3: SAME}, {"within": 0.01}, "undecided", ""),
    ({1: [0.5, 0.9, 0.2] * 2, 2: [0.7, 0.5, 0.6] * 2}, {}, "undecided", ""),
]


@pytest.mark.parametrize(("values", "more", "verdict", "measured"), RISES)
def test_monotone(
    values: dict[Any, Any], more: dict[str, Any], verdict: str, measured: str
) -> None:
    found = _over(values, monotone="a", **more)
    assert found["verdict"] == verdict
    assert found["measured"].startswith(measured)
    verb = "falls" if more.get("direction") == "falling" else "rises"
    assert found["claim"].startswith(f"a: test_accuracy {verb} with x")


@pytest.mark.parametrize(
    ("direction", "verdict"), [("falling", "holds"), ("rising", "does not hold")]
)
def test_a_lead_along_a_sweep(direction: str, verdict: str) -> None:
    """Both rise with x, and the lead of a shrinks from 0.3 to 0.1."""
    noise = np.array([0.0, 0.01] * 4)
    finals = {("a", 1): 0.5, ("a", 2): 0.6, ("b", 1): 0.2, ("b", 2): 0.5}
    points = [(name, {"x": x}, end + noise) for (name, x), end in finals.items()]
    claim = {"monotone": "a", "than": "b", "over": "x", "direction": direction}
    found = judged(Grid(points), **claim)
    assert found["verdict"] == verdict
    assert found["claim"].startswith("a less b: test_accuracy ")
    assert abs(found["estimate"]) == pytest.approx(0.2)


def test_the_page_s_interaction_is_judged() -> None:
    """Compression gains 0.3 on a slow uplink and 0.1 on a fast one."""
    page = Path("docs/judging.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(claims:.*?)```", page, re.DOTALL)
    (claim,) = yaml.safe_load(text)["claims"]
    noise = np.array([0.0, 0.01] * 4)
    finals = {("plain", 1e4): 0.5, ("plain", 1e6): 0.7}
    finals |= {("compressed", 1e4): 0.8, ("compressed", 1e6): 0.8}
    points = [
        (name, {claim["over"]: x}, end + noise) for (name, x), end in finals.items()
    ]
    found = judged(Grid(points), **claim)
    assert found["verdict"] == "holds"
    assert found["estimate"] == pytest.approx(0.2)


def _points(*at: dict[str, Any], of: str = "a") -> list[Any]:
    return [(of, values, [0.5] * 8) for values in at]


@pytest.mark.parametrize(
    ("points", "claim", "why"),
    [
        (
            [*_points({"x": 1}, {"x": 2}), *_points({"x": 1}, {"x": 3}, of="b")],
            *({"monotone": "a", "than": "b"}, "a and b have different values of x"),
        ),
        (
            _points({"x": 1, "y": 1}, {"x": 1, "y": 2}),
            *({"monotone": "a"}, "more than x is swept for a"),
        ),
        (
            [*_points({"x": 1}, {"x": 2}), *_points({}, of="b")],
            *({"critical": "a", "than": "b", "within": 0.1}, "x is not swept for b"),
        ),
        (
            [*_points({"x": "u"}, {"x": "v"}), *_points({"x": "u"}, of="b")],
            {"critical": "a", "than": "b", "within": 0.1},
            "x is not swept over numbers above 0",
        ),
    ],
)
def test_what_is_not_swept_alike_is_said(points: Any, claim: Any, why: str) -> None:
    assert judged(Grid(points), over="x", **claim)["why"].startswith(why)


@pytest.mark.parametrize(
    ("within", "verdict"),
    [(0.1, "holds"), (0.05, "undecided"), (0.01, "does not hold")],
)
def test_steady(within: float, verdict: str) -> None:
    # The p-value against it is that of the worst of three pairs, three times.
    middle = [0.545, 0.55, 0.555] * 3
    values = {0.1: [0.5] * 9, 0.5: middle, 0.9: [0.5, 0.51, 0.5] * 3}
    found = _over(values, steady="a", within=within)
    assert found["verdict"] == verdict
    if verdict == "does not hold":
        assert found["p"] == pytest.approx(2 * 3 * 0.5**9)


MEAN = {"no_worse_mean": "a", "than": "b", "over": "net", "within": 0.01}


def _mean(a: Any, b: Any, lost: tuple[str, str] = ("", ""), **more: Any) -> pd.Series:
    """Judges accuracies `[network][replicate]`, of six replicates."""
    points = [
        (name, {"net": net}, [*row] * (6 // len(row)))
        for name, rows in (("a", a), ("b", b))
        for net, row in zip("rvsm", rows, strict=False)
    ]
    study = Grid(points)
    for run in study.manifest["runs"]:
        if (run["variant"], run["parameters"]["net"]) == lost:
            run["stop"] = "diverged"
    return judged(study, **MEAN | more)


def test_the_mean_of_networks_is_one_number_of_each_replicate() -> None:
    a = np.array(  # means over networks: -0.005, -0.012 and 0.004
        [
            [0.887, 0.87, 0.9],
            [0.899, 0.89, 0.91],
            [0.902, 0.9, 0.9],
            [0.892, 0.892, 0.906],
        ]
    )
    same = [[0.9]] * 4
    found = _mean(a, same)
    assert found["estimate"] == pytest.approx(-0.005)
    assert (found["low"], found["high"]) == pytest.approx((-0.012, 0.004))
    assert found["verdict"] == "undecided"
    assert _mean(a, same, within=0.015)["verdict"] == "holds"
    assert _mean(a - 0.03, same)["verdict"] == "does not hold"
    found = _mean(same, same, ("b", "v"))
    assert (found["low"], found["high"]) == (pytest.approx(0.9 / 4), math.inf)
    assert "net=v diverged, at most 0" in found["why"]
    assert _mean(same, same, metric="test_loss")["verdict"] == "undecided"
    assert _mean(same[:3], same)["replicates"] == 6
    assert "has no runs at" in _mean(same, same[:3])["why"]


RATES = (0.1, 0.2, 0.4, 0.8)
CRITICAL = {"critical": "a", "than": "b", "over": "rate", "within": 0.05, "says": "x"}
EVERYWHERE = tuple(("b", rate) for rate in RATES)


def _stood(*places: int) -> list[list[float]]:
    """Returns accuracies of replicates, good up to a place of the rates each."""
    return [
        [0.9 - 0.01 * (i == 1) if i <= place else 0.3 for i in range(len(RATES))]
        for place in places
    ]


def _critical(a: Any, b: Any, lost: Any = (), **more: Any) -> pd.Series:
    """Judges accuracies `[replicate][rate]`; runs of some rates diverged."""
    points = [
        (name, {"rate": rate}, [row[place] for row in rows])
        for name, rows in (("a", a), ("b", b))
        for place, rate in enumerate(RATES)
    ]
    study = Grid(points)
    for run in study.manifest["runs"]:
        if (run["variant"], run["parameters"]["rate"]) in lost:
            run["stop"] = "diverged"
    if more.get("metric") == "test_loss":
        table = study.tables["evaluations"]
        study.tables["evaluations"] = table.assign(test_loss=1 - table["test_accuracy"])
    return judged(study, **CRITICAL | more)


AGAIN = [[0.9, 0.3, 0.87, 0.3]] * 6  # a swept value that is fine again counts
STANDS: list[tuple[Any, Any, dict[str, Any], str, Any, str]] = [
    # Each lies between two swept values: four of six may also be alike.
    (_stood(2, 2, 1, 2, 2, 2), _stood(*[1] * 6), {}, "undecided", (2, 0.5, 4), ""),
    (_stood(*[2] * 6), _stood(*[0] * 6), {}, "holds", (4, 2, 8), ""),
    (_stood(*[0] * 6), _stood(*[2] * 6), {}, "does not hold", (0.25, 1 / 8, 0.5), ""),
    (_stood(*[2] * 5), _stood(*[0] * 5), {}, "not decidable", (4, 2, 8), ""),
    (_stood(1, 2, 1, 2, 1, 2), _stood(1, 2, 1, 2, 1, 2), {}, "undecided", (1,), ""),
    # 4 times, known to a factor of 2.
    (_stood(*[2] * 8), _stood(*[0] * 8), {"by_at_least": 1.9}, "holds", (), ""),
    (_stood(*[2] * 8), _stood(*[0] * 8), {"by_at_least": 4}, "undecided", (), ""),
    (_stood(*[2] * 8), _stood(*[0] * 8), {"by_at_least": 8.1}, "does not hold", (), ""),
    # What diverged is not stood, whatever it ended with.
    (_stood(*[2] * 6), _stood(*[1] * 6), {"lost": [("a", 0.4)]}, "undecided", (1,), ""),
    (
        *(_stood(*[1] * 6), _stood(*[1] * 6), {"lost": EVERYWHERE}, "holds"),
        *((), "6 replicates in which all swept values diverged"),
    ),
    (_stood(*[3] * 6), _stood(*[1] * 6), {}, "holds", (2, 2, math.inf), "a >= 0.8"),
    (
        _stood(*[1] * 6),
        _stood(*[3] * 6),
        {},
        "does not hold",
        (0.5, 0, 0.5),
        "b >= 0.8",
    ),
    (
        *(_stood(*[3] * 6), _stood(*[3] * 6), {}, "undecided", ()),
        "both sides have critical values beyond the sweep; widen it",
    ),
    (AGAIN, _stood(*[0] * 6), {}, "holds", (4,), "a 0.4 to 0.8 and b 0.1 to 0.2"),
    (
        _stood(*[1] * 6),
        _stood(*[0] * 6),
        {"metric": "test_loss"},
        "undecided",
        (2,),
        "",
    ),
]


@pytest.mark.parametrize(("a", "b", "more", "verdict", "numbers", "words"), STANDS)
def test_critical(
    a: Any, b: Any, more: dict[str, Any], verdict: str, numbers: Any, words: str
) -> None:
    found = _critical(a, b, **more)
    assert found["verdict"] == verdict
    known = found[["estimate", "low", "high"]].tolist()[: len(numbers)]
    assert known == pytest.approx(list(numbers))
    assert words in found["measured"] + found["why"]
    if verdict == "not decidable":
        assert found["p"] == pytest.approx(2 * 0.5**5)


@pytest.mark.slow
def test_wrong_decisions_are_as_rare_as_said() -> None:
    """Both variants stand the same: either decision is wrong.

    Of 300 claims at most 5 % are wrong, and four standard errors are 5 %.
    """
    rng = np.random.default_rng(20261122)
    claim, wrong = read(CRITICAL), 0
    frames = Grid([(v, {"rate": r}, [0.5] * 8) for v in "ab" for r in RATES])
    measured = measure(frames, [claim])
    for _ in range(300):
        places = rng.choice(3, p=[0.2, 0.6, 0.2], size=(2, 8))
        values = np.array([_stood(*row) for row in places])  # variant, replicate, rate
        finals = {"final test_accuracy": values.transpose(0, 2, 1).ravel()}
        numbers = measured.low.assign(**finals)
        drawn = Measured(measured.table, numbers, numbers)
        row = claims.judge(drawn, [claim], 8).iloc[0]
        wrong += row["verdict"] != "undecided"
    assert wrong <= 30


SLOPES = (-0.98, -1.0, -1.02) * 2
HALF = 0.02  # of their range, which is the interval of six
LATE = np.arange(0, 1001, 50)


def _power(slope: float) -> tuple[Any, Any]:
    """Returns a power law that begins like something else: only the decade counts."""
    gap = 3 * np.maximum(LATE, 1.0) ** slope
    return LATE, np.where(LATE[-1] > 10 * LATE, 5.0, gap)


def _slope(study: Any, of: str | list[str], is_: float, within: float) -> pd.Series:
    more: dict[str, Any] = {"is": is_, "metric": GAP}
    return judged(study, slope=of, within=within, **more)


@pytest.mark.parametrize(
    ("is_", "within", "verdict"),
    [
        (-1, 0.1, "holds"),
        (-0.5, 0.0, "holds"),  # steeper than a bound is within the bound
        (-1, 0.01, "undecided"),
        (-1.2, 0.1, "does not hold"),
    ],
)
def test_slope_over_a_run(is_: float, within: float, verdict: str) -> None:
    study = Decays({"a": [_power(slope) for slope in SLOPES]})
    found = _slope(study, "a", is_, within)
    assert found["verdict"] == verdict
    numbers = found[["estimate", "low", "high"]].tolist()
    assert numbers == pytest.approx([-1, -1 - HALF, -1 + HALF])
    said = f"a: slope of {GAP} at most {is_:g} to {within:g}"
    assert found["claim"] == said
    assert found["measured"] == "slope: -1.000 [-1.020, -0.980]"
    assert found["why"].startswith(f"slope against {is_ + within:g}; p")


@pytest.mark.parametrize(
    ("is_", "verdict"),
    [(-0.5, "holds"), (-0.6, "undecided"), (-0.8, "does not hold")],
)
def test_slope_over_horizons(is_: float, verdict: str) -> None:
    slopes, horizons = (-0.48, -0.5, -0.52) * 2, (100, 400, 1600)
    # A triangle of base K and mean K^slope; evaluations are not equally far apart.
    study = Decays(
        {
            f"K-{k}": [
                ([0, k // 4, k], 2 * k**b * np.array([1, 0.75, 0])) for b in slopes
            ]
            for k in horizons
        }
    )
    found = _slope(study, [f"K-{k}" for k in horizons], is_, 0.1)
    assert found["verdict"] == verdict
    assert found["estimate"] == pytest.approx(-0.5)
    assert found["high"] == pytest.approx(-0.5 + HALF)
    said = f"K-100, K-400, K-1600: slope of mean {GAP} at most {is_:g} to 0.1"
    assert found["claim"] == said


def test_replicates_without_a_slope_are_said() -> None:
    good = [_power(-1), _power(-1.01), _power(-0.99)] * 2
    below_zero = (LATE, np.linspace(1, -1e-9, LATE.size))
    few = (np.array([0, 20, 500, 1000]), np.array([5.0, 4.0, 2.0, 1.0]))
    study = Decays({"a": [*good, below_zero, few], "b": good})
    found = _slope(study, "a", -1, 0.1)
    assert found["verdict"] == "holds"
    assert found["estimate"] == pytest.approx(-1)
    assert found["why"].startswith(
        "slope against -0.9; 2 replicates without a slope; "
        "6 of 8 replicates can be measured; p"
    )
    same = _slope(study, ["a", "b"], -1, 0.1)  # the horizon of both is 1000
    assert (same["verdict"], same["measured"]) == ("undecided", "")
    assert same["why"].endswith(
        "6 replicates without a slope; 0 of 8 replicates can be measured"
    )
    assert _slope(study, ["a", "x"], -1, 0.1)["why"].startswith("the study has")
    on_it = Decays({"a": [_power(-1)] * 6})  # but for rounding
    assert _slope(on_it, "a", -1, 0.0)["verdict"] == "holds"
    other: dict[str, Any] = {"is": -1, "metric": "objective"}
    why = judged(study, slope="a", within=0.1, **other)["why"]
    assert "no column 'objective'" in why


def _below(means: tuple[float, ...], bound: float, *lost: int) -> pd.Series:
    """Judges runs that fall in two lines, whose mean over 100 commits is known."""
    # From 3 m to m in the first quarter and to 0 at the end: (4 / 2 + 1 / 2 * 3) / 4.
    line = np.array([3.0, 1.0, 0.0]) / 0.875
    study = Decays({"a": [([0, 25, 100], line * mean) for mean in means]})
    for replicate in lost:
        study.manifest["runs"][replicate]["stop"] = "diverged"
    return judged(study, below="a", metric=GAP, bound=bound)


MEANS = (0.9, 1.0, 1.1, 1.0) * 2


@pytest.mark.parametrize(
    ("bound", "verdict"),
    [(2.0, "holds"), (1.2, "holds"), (1.0, "undecided"), (0.8, "does not hold")],
)
def test_the_mean_over_a_run_against_its_bound(bound: float, verdict: str) -> None:
    found = _below(MEANS, bound)
    assert found["verdict"] == verdict
    numbers = found[["estimate", "low", "high"]].tolist()
    assert numbers == pytest.approx([1, 0.9, 1.1])  # the range
    assert found["claim"] == f"a: mean {GAP} at most {bound:g}"
    assert found["why"].startswith(f"mean over the run against {bound:g}; p")


def test_a_mean_on_the_bound_obeys_it_and_who_diverged_does_not() -> None:
    assert _below((1.0,) * 6, 1.0)["verdict"] == "holds"
    found = _below(MEANS, 100.0, 1, 2)
    assert found["verdict"] == "undecided"  # six of eight are not enough
    assert found["high"] == np.inf
    assert "2 of a diverged" in found["why"]
