import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from stalesim.analysis import claims
from stalesim.analysis.bounds import Sample, contrast, logarithm
from stalesim.analysis.claims.final_values import DIFFERENCE
from stalesim.analysis.claims.speed import resolution
from stalesim.analysis.frames import Study
from stalesim.simulator.scenario.scenario import Every
from tests.unit.analysis.studies import (
    Curves,
    Decays,
    Grid,
    arrives,
    evaluations_of,
    manifest_of,
    run_of,
    usual,
)

TO = {"test_accuracy": 0.9}


def _judge(study: Study, **claim: Any) -> pd.Series:
    entries = {"metric": "test_accuracy", "by_at_least": 1.0, "says": "figure 2"}
    whole = usual(claim, **entries)
    study.manifest["scenario"]["claims"] = [whole]
    frame = claims.evaluate(study)
    assert frame.columns.tolist() == list(claims.Finding._fields)
    (row,) = [row for _, row in frame.iterrows()]
    return row


def _faster(fast: list[int], slow: list[int], **more: Any) -> pd.Series:
    study = Curves({"a": [arrives(n) for n in fast], "b": [arrives(n) for n in slow]})
    return _judge(study, faster="a", than="b", to=TO, **more)


def test_faster_holds() -> None:
    found = _faster([3, 4, 3] * 2, [7, 9, 8] * 2)
    assert found["verdict"] == "holds"
    # Between the evaluations before and at the target: from 6 / 3 to 8 / 2.
    assert found["estimate"] == pytest.approx(math.sqrt(2 * 3.5))  # of the medians
    assert (found["low"], found["high"]) == pytest.approx((2, 4))  # six: the range
    assert found["replicates"] == 6
    assert found["claim"] == "a faster than b to test_accuracy 0.9"
    assert found["says"] == "figure 2"
    numbers = f"{found['estimate']:.2f} [2.00, 4.00]"
    assert found["measured"] == f"times faster: {numbers}; reached 6/6 and 6/6"
    assert found["p"] == pytest.approx(2 * 0.5**6)
    assert found["corrected"] == found["p"]  # the only claim
    assert found["why"] == "ratio against 1; p = 0.031"
    assert found["origin"] == "paper"


def test_faster_is_paired() -> None:
    # Times of either side spread over 2..9, and overlap; every ratio is near two.
    fast, slow = [2, 3, 6, 5, 4, 3], [4, 6, 9, 9, 8, 6]
    assert _faster(fast, slow)["verdict"] == "holds"
    assert _faster(fast, [9, 8, 4, 2, 6, 6])["verdict"] == "undecided"


def test_faster_does_not_hold() -> None:
    assert _faster([4, 6, 9] * 2, [1, 2, 3] * 2)["verdict"] == "does not hold"


def test_faster_by_at_least() -> None:
    times = ([2, 3, 4] * 2, [6, 8, 9] * 2)
    found = _faster(*times, by_at_least=1.5)
    assert found["verdict"] == "holds"
    assert found["claim"].endswith("0.9, 1.5 times")
    assert _faster(*times, by_at_least=3.0)["verdict"] == "undecided"
    assert _faster(*times, by_at_least=7.0)["verdict"] == "does not hold"


def test_a_difference_within_the_grid_is_undecided() -> None:
    """Whatever the evaluations; and which would decide is said."""
    found = _faster([1] * 20, [2] * 20, by_at_least=1.5)
    assert found["verdict"] == "undecided"
    assert (found["low"], found["high"]) == (1, math.inf)
    assert found["p"] == 1
    assert (
        "; 20 ratios may lie on either side: evaluations 1 s apart leave 1 to inf"
        in (found["why"])
    )
    # The middles are 0.5 and 1.5 s: 3 times, so 0.69 / (1 / 0.5 + 1 / 1.5) s suffice.
    assert "; evaluate.every of {time: 0.2} may decide; p" in found["why"]


@pytest.mark.parametrize(
    ("counted", "apart", "advice"),
    [
        ("joules", 36.2, ""),
        ("rounds", 1.0, "; evaluate.every of {rounds: 1} is the finest"),
        ("commits", 1e6, "; evaluate.every of {commits: 200000} may decide"),
        ("epochs", 1e-4, "; evaluate.every of {epochs: 0.00002} may decide"),
    ],
)
def test_the_advice_is_a_period_that_evaluate_takes(
    counted: str, apart: float, advice: str
) -> None:
    """As is checked by taking it: joules are no unit, and commits are whole."""
    low, high = np.tile([apart, 0], (20, 1)), np.tile([2 * apart, apart], (20, 1))
    both = Sample(low, high)
    said = resolution(both, contrast(logarithm(both), DIFFERENCE), 0.4, counted)
    _, _, found = said.partition("leave 1 to inf")
    assert found == advice
    for written in re.findall(r"{.*}", found):
        assert Every.model_validate(yaml.safe_load(written))


@pytest.mark.parametrize("replicates", [2, 5])
def test_few_replicates_decide_nothing_however_equal_they_are(replicates: int) -> None:
    found = _faster([1] * replicates, [9] * replicates)
    assert found["verdict"] == "not decidable"
    words = f"{replicates} replicates cannot decide a claim, which needs 6"
    assert found["why"].endswith(f"; {words}")


def test_an_interval_of_few_says_that_it_is_a_range() -> None:
    found = _faster([2] * 5, [6] * 5)
    assert found["measured"].startswith("times faster: 3.9 [2.5, 6.0] (range, 94 %)")


def test_faster_where_the_slower_does_not_arrive() -> None:
    found = _faster([1, 2, 1] * 2, [99, 8, 9] * 2)
    assert found["verdict"] == "holds"
    assert found["measured"].endswith("; reached 6/6 and 4/6")
    assert found["why"].startswith("ratio against 1; b did not always reach the target")
    assert found["high"] == math.inf
    # That one came late says nothing of the others, who were faster.
    assert _faster([9, 8, 9] * 2, [99, 1, 1] * 2)["verdict"] == "undecided"


def test_faster_where_the_faster_does_not_arrive() -> None:
    found = _faster([99, 8, 9] * 2, [1, 2, 1] * 2)
    assert found["verdict"] == "does not hold"
    assert "a did not always reach the target" in found["why"]
    assert found["low"] == 0


def test_faster_where_neither_always_arrives() -> None:
    found = _faster([99, 1, 1] * 2, [9, 99, 9] * 2)
    assert found["verdict"] == "undecided"
    assert found["measured"].endswith("reached 4/6 and 4/6")
    assert "; b and a did not always reach the target" in found["why"]


def test_faster_where_nothing_had_to_be_learned() -> None:
    found = _faster([0] * 6, [2] * 6)
    assert found["verdict"] == "undecided"
    said = "ratio against 1; 6 pairs at the target before anything was learned; p = 1"
    assert found["why"] == said


def _finals(first: list[float], second: list[float], **claim: Any) -> pd.Series:
    study = Curves({"a": [[v] for v in first], "b": [[v] for v in second]})
    return _judge(study, than="b", **claim)


@pytest.mark.parametrize(
    ("shift", "verdict"),
    [(0.02, "holds"), (-0.02, "does not hold"), (0.001, "undecided")],
)
def test_higher(shift: float, verdict: str) -> None:
    base = np.array([0.5, 0.7, 0.9, 0.6, 0.8, 0.4])  # spread far wider than the shift
    noise = np.array([0.002, -0.002, 0.002, -0.002, 0.001, -0.001])
    found = _finals([*(base + shift + noise)], [*base], higher="a")
    assert found["verdict"] == verdict
    assert found["estimate"] == pytest.approx(shift)
    ends = found["low"] - shift, found["high"] - shift
    assert ends == pytest.approx((-0.002, 0.002))  # of six, the range
    assert found["claim"] == "a higher than b in test_accuracy"


@pytest.mark.parametrize(
    ("shift", "verdict"),
    [
        (0.001, "holds"),
        (-0.004, "holds"),
        (0.009, "undecided"),
        (0.02, "does not hold"),
        (-0.02, "does not hold"),
    ],
)
def test_close(shift: float, verdict: str) -> None:
    base = np.array([0.5, 0.7, 0.9, 0.6, 0.8, 0.4])
    noise = np.array([0.002, -0.002, 0.002, -0.002, 0.001, -0.001])
    found = _finals([*(base + shift + noise)], [*base], close="a", within=0.01)
    assert found["verdict"] == verdict
    assert found["claim"] == "a as good as b in test_accuracy to 0.01"


def test_one_replicate_is_not_close() -> None:
    found = _finals([0.5], [0.5], close="a", within=0.01)
    assert found["verdict"] == "not decidable"
    assert math.isnan(found["low"])


def test_groups_and_metrics_that_are_not_there() -> None:
    study = Curves({"a": [[0.9]] * 6})
    found = _judge(study, higher="a", than="b")
    assert found["verdict"] == "undecided"
    assert found["why"] == "the study has no finished runs of 'b'"
    study = Curves({"a": [[0.9]] * 6, "b": [[0.9]] * 6})
    found = _judge(study, faster="a", than="b", to={"objective": 0.1})
    assert found["verdict"] == "undecided"
    assert "no column 'objective'" in found["why"]


def test_an_unfinished_study_says_how_much_it_compared() -> None:
    study = Curves({"a": [arrives(1)] * 5, "b": [arrives(4)] * 5})
    study.manifest["runs"][1]["stop"] = "incomplete"
    found = _judge(study, faster="a", than="b", to=TO)
    assert found["replicates"] == 4
    assert "; 4 of 5 replicates can be compared; p" in found["why"]


def _sweep(study: Study) -> None:
    """Takes labels such as "a, q=1" for variants and swept values."""
    for run in study.manifest["runs"]:
        run["variant"], swept = run["label"].split(", q=")
        run["parameters"] = {"q": int(swept)}


def test_a_sweep_is_judged_at_each_point() -> None:
    study = Curves(
        {
            "a, q=1": [arrives(1)] * 7,
            "a, q=2": [arrives(8)] * 7,
            "b, q=1": [arrives(4)] * 7,
            "b, q=2": [arrives(4)] * 7,
        }
    )
    _sweep(study)
    claim = {"faster": "a", "than": "b", "to": TO, "says": "figure 2"}
    study.manifest["scenario"]["claims"] = [claim]
    frame = claims.evaluate(study)
    assert frame["verdict"].tolist() == ["holds", "does not hold"]
    assert frame["claim"][1] == "a, q=2 faster than b, q=2 to test_accuracy 0.9"
    claim["than"] = "b, q=1"
    found = claims.evaluate(study)
    assert found["verdict"].tolist() == ["undecided"]


SLOPES = (-0.98, -1.0, -1.02) * 2
HALF = 0.02  # of their range, which is the interval of six
LATE = np.arange(0, 1001, 50)


def _power(slope: float, commits: Any = LATE) -> tuple[Any, Any]:
    """Returns a power law that begins like something else: only the decade counts."""
    commits = np.asarray(commits)
    gap = 3 * np.maximum(commits, 1.0) ** slope
    return commits, np.where(10 * commits < commits[-1], 5.0, gap)


def _slope(study: Study, of: str | list[str], is_: float, within: float) -> pd.Series:
    more: dict[str, Any] = {"is": is_, "metric": "optimality_gap"}
    return _judge(study, slope=of, within=within, **more)


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
    assert found["estimate"] == pytest.approx(-1)
    assert found["low"] == pytest.approx(-1 - HALF)
    assert found["high"] == pytest.approx(-1 + HALF)
    assert found["replicates"] == 6
    said = f"a: slope of optimality_gap at most {is_:g} to {within:g}"
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
    assert found["claim"] == (
        f"K-100, K-400, K-1600: slope of mean optimality_gap at most {is_:g} to 0.1"
    )


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
    assert same["verdict"] == "undecided"
    assert same["measured"] == ""
    assert same["why"].endswith(
        "6 replicates without a slope; 0 of 8 replicates can be measured"
    )


def test_slope_of_too_few_or_of_what_is_not_there() -> None:
    study = Decays({"a": [_power(-1), _power(-1)]})
    found = _slope(study, "a", -1, 0.1)
    assert found["verdict"] == "not decidable"
    assert _slope(study, ["a", "x"], -1, 0.1)["why"].startswith("the study has")
    more: dict[str, Any] = {"is": -1, "metric": "objective"}
    found = _judge(study, slope="a", within=0.1, **more)
    assert "no column 'objective'" in found["why"]


def test_slope_at_each_point_of_a_sweep() -> None:
    groups = {"a, q=1": -1, "a, q=2": -0.2, "b, q=1": -1}
    study = Decays({name: [_power(b)] * 7 for name, b in groups.items()})
    _sweep(study)
    claim = {"slope": "a", "metric": "optimality_gap", "within": 0.1, "says": "thm 2"}
    study.manifest["scenario"]["claims"] = [claim | {"is": -1}]
    frame = claims.evaluate(study)
    assert frame["verdict"].tolist() == ["holds", "does not hold"]
    assert frame["claim"][1] == "a, q=2: slope of optimality_gap at most -1 to 0.1"


def test_no_claims() -> None:
    assert claims.evaluate(Curves({"a": [[0.9]]})).empty


class Swept:
    """A study of a variant whose final values are known at every swept value."""

    def __init__(self, values: dict[float, list[float]], **more: Any) -> None:
        replicates = max(len(finals) for finals in values.values())
        self.manifest = manifest_of(replicates=replicates)
        frames, number = [], 0
        for x, finals in values.items():
            for replicate, final in enumerate(finals):
                label = f"a, epsilon={x}"
                run = run_of(number, label, replicate, variant="a", **more)
                run["parameters"] = {"algorithm.epsilon": x}
                self.manifest["runs"].append(run)
                frames.append(evaluations_of(number, [0.0], test_accuracy=[final]))
                number += 1
        self._table = pd.concat(frames)

    def table(self, name: str) -> pd.DataFrame:
        assert name == "evaluations"
        return self._table


def _over(values: dict[float, list[float]], **claim: Any) -> pd.Series:
    study: Any = Swept(values)
    return _judge(study, over="algorithm.epsilon", **claim)


def test_monotone() -> None:
    found = _over({0.1: [0.5, 0.6, 0.55] * 2, 0.5: [0.7, 0.8, 0.76] * 2}, monotone="a")
    assert found["verdict"] == "holds"
    assert found["estimate"] == pytest.approx(0.2)
    assert found["claim"] == "a: test_accuracy rises with algorithm.epsilon"
    assert found["measured"] == "smallest rise, 0.1 to 0.5: 0.2000 [0.2000, 0.2100]"


def test_monotone_but_for_a_step_down() -> None:
    values = {0.1: [0.5, 0.51] * 4, 0.2: [0.4, 0.42] * 4, 0.3: [0.9, 0.92] * 4}
    found = _over(values, monotone="a")
    assert found["verdict"] == "does not hold"
    assert found["measured"].startswith(
        "smallest rise, 0.1 to 0.2: -0.0950 [-0.1000, -0.0900"
    )
    assert _over(values, monotone="a", within=0.15)["verdict"] == "holds"


def test_what_rises_but_for_a_step_that_is_not_known_is_undecided() -> None:
    """As truths of 1, 2, 1.9, 3 are: a slope over ranks said that they rise."""
    flat = [0.5, 0.51] * 4
    values = {1: [0.1] * 8, 2: flat, 3: flat[::-1], 4: [0.9] * 8}
    found = _over(values, monotone="a")
    assert found["verdict"] == "undecided"
    assert found["measured"].startswith("smallest rise, 2 to 3: 0.000 [-0.010, 0.010]")


def test_what_never_falls_by_much_need_not_rise() -> None:
    same = [0.5] * 8
    found = _over({1: same, 2: same, 3: same}, monotone="a", within=0.01)
    assert found["verdict"] == "undecided"


@pytest.mark.parametrize(
    ("direction", "verdict"), [("falling", "holds"), ("rising", "does not hold")]
)
def test_a_lead_along_a_sweep(direction: str, verdict: str) -> None:
    """Both rise with x, and the lead of a shrinks from 0.3 to 0.1."""
    noise = np.array([0.0, 0.01] * 4)
    finals = {("a", 1): 0.5, ("a", 2): 0.6, ("b", 1): 0.2, ("b", 2): 0.5}
    points = [(name, {"x": x}, end + noise) for (name, x), end in finals.items()]
    claim = {"monotone": "a", "than": "b", "over": "x", "direction": direction}
    found = _judge(Grid(points), **claim)
    assert found["verdict"] == verdict
    assert found["claim"].startswith("a less b: test_accuracy ")
    assert abs(found["estimate"]) == pytest.approx(0.2)


def test_a_lead_needs_the_same_swept_values() -> None:
    points = [("a", {"x": 1}, [0.5] * 8), ("a", {"x": 2}, [0.5] * 8)]
    points += [("b", {"x": 1}, [0.5] * 8), ("b", {"x": 3}, [0.5] * 8)]
    found = _judge(Grid(points), monotone="a", than="b", over="x")
    assert found["why"] == "a and b have different values of x"


def test_monotone_or_not() -> None:
    found = _over({0.1: [0.5, 0.9, 0.2] * 2, 0.5: [0.7, 0.5, 0.6] * 2}, monotone="a")
    assert found["verdict"] == "undecided"


@pytest.mark.parametrize(
    ("within", "verdict"),
    [(0.1, "holds"), (0.05, "undecided"), (0.01, "does not hold")],
)
def test_steady(within: float, verdict: str) -> None:
    # The p-value against it is that of the worst of three pairs, three times.
    values = {
        0.1: [0.5] * 9, 0.5: [0.545, 0.55, 0.555] * 3, 0.9: [0.5, 0.51, 0.5] * 3
    }  # fmt: skip
    assert _over(values, steady="a", within=within)["verdict"] == verdict


def test_fewer_commits() -> None:
    study = Curves({"a": [arrives(1)] * 6, "b": [arrives(1)] * 6})
    for run in study.manifest["runs"]:
        slow = run["variant"] == "b"
        run |= {"commits": 1001 + run["replicate"] if slow else 13, "stop": "target"}
    found = _judge(study, fewer="a", than="b", by_at_least=2)
    assert found["verdict"] == "holds"
    # They ended between evaluations: by a mean over commits, which is exact.
    assert (found["low"], found["high"]) == (
        pytest.approx(77),
        pytest.approx(1006 / 13),
    )
    assert found["claim"] == "a in fewer commits than b to the target, 2 times"
    for run in study.manifest["runs"]:
        if run["variant"] == "b":
            run |= {"stop": "commits"}
    found = _judge(study, fewer="a", than="b", by_at_least=10)
    assert found["verdict"] == "holds"
    assert "; b did not always reach the target" in found["why"]


def test_an_evaluation_that_ends_a_run_knows_it_up_to_the_one_before() -> None:
    study = Curves({"a": [arrives(1)] * 6, "b": [arrives(1)] * 6})
    last = study.tables["evaluations"].groupby("run")["commits"].nlargest(2)
    for run in study.manifest["runs"]:
        before, end = sorted(last[run["run"]])
        run |= {"commits": end, "stop": "target"}
    found = _judge(study, fewer="a", than="b")
    assert (found["low"], found["high"]) == (
        pytest.approx(before / end),
        pytest.approx(end / before),
    )


def test_what_is_not_swept_is_compared_at_every_point() -> None:
    study: Any = Swept({0.1: [0.5, 0.6, 0.55] * 3, 0.5: [0.7, 0.8, 0.76] * 3})
    for replicate in range(9):
        number = len(study.manifest["runs"])
        study.manifest["runs"].append(run_of(number, "b", replicate))
        rows = evaluations_of(number, [0.0], test_accuracy=[0.9])
        study._table = pd.concat([study._table, rows])
    study.manifest["scenario"]["claims"] = [
        {"higher": "b", "than": "a", "metric": "test_accuracy", "says": "figure 6"}
    ]
    frame = claims.evaluate(study)
    assert frame["verdict"].tolist() == ["holds", "holds"]
    assert "b higher than a, epsilon=0.5" in frame["claim"][1]


def test_what_is_swept_over_fewer_keys_is_compared_where_these_agree() -> None:
    """Of a (epsilon and commits) and b (commits alone), at equal commits."""
    study: Any = Swept({0.1: [0.5, 0.51, 0.52] * 3, 0.5: [0.7, 0.71, 0.72] * 3})
    runs, tables = study.manifest["runs"], [study._table]
    for run in runs:
        run["parameters"] |= {"stop.commits": 60}
        run["label"] += ", commits=60"
    for commits, value in ((300, 0.1), (60, 0.9)):
        label, parameters = f"b, commits={commits}", {"stop.commits": commits}
        for replicate in range(9):
            more = {"variant": "b", "parameters": parameters}
            runs.append(run_of(len(runs), label, replicate, **more))
            tables.append(evaluations_of(len(runs) - 1, [0.0], test_accuracy=[value]))
    study._table = pd.concat(tables)
    claim = {"metric": "test_accuracy", "says": "figure 6"}
    study.manifest["scenario"]["claims"] = [
        {"higher": "b", "than": "a", **claim},
        {"higher": "a", "than": "b", **claim},
    ]
    frame = claims.evaluate(study)
    assert frame["verdict"].tolist() == [
        *("holds", "holds"),
        *("does not hold", "does not hold"),
    ]
    assert "b, commits=60 higher than a, epsilon=0.1, commits=60" in frame["claim"][0]
    assert "a, epsilon=0.5, commits=60 higher than b, commits=60" in frame["claim"][3]


def test_two_targets_in_one_study_are_told_apart() -> None:
    study = Curves(
        {
            "a": [arrives(n) for n in (1, 2, 3) * 3],
            "b": [arrives(n) for n in (3, 5, 7) * 3],
        }
    )
    study.manifest["scenario"]["claims"] = [
        {"faster": "a", "than": "b", "to": {"test_accuracy": to}, "by_at_least": 1.0,
         "says": "figure 2"}
        for to in (0.9, 0.95)
    ]  # fmt: skip
    frame = claims.evaluate(study)
    assert frame["verdict"].tolist() == ["holds", "undecided"]
    assert "; b and a did not always reach the target" in frame["why"][1]
    assert not claims.all_decided(study)
    del study.manifest["scenario"]["claims"][1]
    assert claims.all_decided(study)


def test_more_than_one_key_that_is_swept_is_refused() -> None:
    study: Any = Swept({0.1: [0.5, 0.6], 0.5: [0.7, 0.8]})
    for run in study.manifest["runs"]:
        epsilon = run["parameters"]["algorithm.epsilon"]
        run["parameters"] = {"algorithm.epsilon": 0.1, "stop.commits": epsilon}
    claim = {"monotone": "a", "over": "algorithm.epsilon", "metric": "test_accuracy"}
    study.manifest["scenario"]["claims"] = [claim | {"says": "figure 6"}]
    (why,) = claims.evaluate(study)["why"]
    assert why.startswith("more than algorithm.epsilon is swept for a")
