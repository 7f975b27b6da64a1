"""Claims on pairs of groups and on values: what they say of numbers that are known."""

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
from stalesim.simulator.scenario.scenario import Every
from tests.unit.analysis.studies import Curves, Grid, arrives, judged

TO = {"test_accuracy": 0.9}


def _faster(fast: list[int], slow: list[int], **more: Any) -> pd.Series:
    study = Curves({"a": [arrives(n) for n in fast], "b": [arrives(n) for n in slow]})
    return judged(study, faster="a", than="b", to=TO, **more)


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


LATE = "did not always reach the target"
SPEEDS: list[tuple[list[int], list[int], float, str, str]] = [
    # Times of either side spread over 2..9, and overlap; every ratio is near two.
    ([2, 3, 6, 5, 4, 3], [4, 6, 9, 9, 8, 6], 1, "holds", ""),
    ([2, 3, 6, 5, 4, 3], [9, 8, 4, 2, 6, 6], 1, "undecided", ""),
    ([4, 6, 9] * 2, [1, 2, 3] * 2, 1, "does not hold", ""),
    ([2, 3, 4] * 2, [6, 8, 9] * 2, 1.5, "holds", "ratio against 1.5; p"),
    ([2, 3, 4] * 2, [6, 8, 9] * 2, 3, "undecided", ""),
    ([2, 3, 4] * 2, [6, 8, 9] * 2, 7, "does not hold", ""),
    ([1, 2, 1] * 2, [99, 8, 9] * 2, 1, "holds", f"ratio against 1; b {LATE}"),
    # That one came late says nothing of the others, who were faster.
    ([9, 8, 9] * 2, [99, 1, 1] * 2, 1, "undecided", f"; b {LATE}"),
    ([99, 8, 9] * 2, [1, 2, 1] * 2, 1, "does not hold", f"; a {LATE}"),
    ([99, 1, 1] * 2, [9, 99, 9] * 2, 1, "undecided", f"; b and a {LATE}"),
    (
        *([0] * 6, [2] * 6, 1, "undecided"),
        "ratio against 1; 6 pairs at the target before anything was learned; p = 1",
    ),
    # However equal they are, few replicates decide nothing.
    *(
        (
            *([1] * n, [9] * n, 1.0, "not decidable"),
            f"; {n} replicates cannot decide a claim, which needs 6",
        )
        for n in (2, 5)
    ),
    # Within the grid, whatever the evaluations. The middles are 0.5 and 1.5 s: 3 times,
    # so 0.69 / (1 / 0.5 + 1 / 1.5) s suffice.
    (
        *([1] * 20, [2] * 20, 1.5, "undecided"),
        "evaluations 1 s apart leave 1 to inf; evaluate.every of {time: 0.2} may ",
    ),
]


@pytest.mark.parametrize(("fast", "slow", "least", "verdict", "why"), SPEEDS)
def test_faster(
    fast: list[int], slow: list[int], least: float, verdict: str, why: str
) -> None:
    found = _faster(fast, slow, by_at_least=least)
    assert found["verdict"] == verdict
    assert why in found["why"]
    assert found["claim"].endswith(f"0.9, {least:g} times" if least != 1 else "0.9")
    arrived = [sum(at <= 10 for at in side) for side in (fast, slow)]
    words = " and ".join(f"{k}/{len(fast)}" for k in arrived)
    assert found["measured"].endswith(f"; reached {words}")
    if arrived[1] < len(slow) and verdict == "holds":
        assert found["high"] == math.inf
    if arrived[0] < len(fast) and verdict == "does not hold":
        assert found["low"] == 0


def test_an_interval_of_few_says_that_it_is_a_range() -> None:
    found = _faster([2] * 5, [6] * 5)
    assert found["measured"].startswith("times faster: 3.9 [2.5, 6.0] (range, 94 %)")


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


BASE = np.array([0.5, 0.7, 0.9, 0.6, 0.8, 0.4])  # spread far wider than the shift
NOISE = np.array([0.002, -0.002, 0.002, -0.002, 0.001, -0.001])
HIGHER, CLOSE = {"higher": "a"}, {"close": "a", "within": 0.01}


@pytest.mark.parametrize(
    ("claim", "words", "shift", "verdict"),
    [
        (HIGHER, "a higher than b in test_accuracy", 0.02, "holds"),
        (HIGHER, "a higher than b in test_accuracy", -0.02, "does not hold"),
        (HIGHER, "a higher than b in test_accuracy", 0.001, "undecided"),
        (CLOSE, "a as good as b in test_accuracy to 0.01", 0.001, "holds"),
        (CLOSE, "a as good as b in test_accuracy to 0.01", -0.004, "holds"),
        (CLOSE, "a as good as b in test_accuracy to 0.01", 0.009, "undecided"),
        (CLOSE, "a as good as b in test_accuracy to 0.01", 0.02, "does not hold"),
        (CLOSE, "a as good as b in test_accuracy to 0.01", -0.02, "does not hold"),
    ],
)
def test_differences(
    claim: dict[str, Any], words: str, shift: float, verdict: str
) -> None:
    sides = {"a": BASE + shift + NOISE, "b": BASE}
    study = Curves({name: [[v] for v in side] for name, side in sides.items()})
    found = judged(study, than="b", **claim)
    assert (found["verdict"], found["claim"]) == (verdict, words)
    assert found["estimate"] == pytest.approx(shift)
    ends = found["low"] - shift, found["high"] - shift
    assert ends == pytest.approx((-0.002, 0.002))  # of six, the range


def _commits(first: list[int], second: list[int]) -> Curves:
    study = Curves({"a": [arrives(1)] * len(first), "b": [arrives(1)] * len(first)})
    for run in study.manifest["runs"]:
        counts = first if run["variant"] == "a" else second
        run["commits"] = counts[run["replicate"]]
    return study


def _ratio(study: Any, is_: float, within: float, **more: Any) -> pd.Series:
    more = {"of": "commits", "is": is_, "within": within} | more
    return judged(study, ratio="a", than="b", **more)


@pytest.mark.parametrize(
    ("is_", "within", "verdict"),
    [
        (2, 0.5, "holds"),
        (2, 0.05, "undecided"),
        (3, 0.5, "does not hold"),
        (1, 0.5, "does not hold"),
    ],
)
def test_ratio_of_commits(is_: float, within: float, verdict: str) -> None:
    # Ratios 1.9, 2 and 2.1, whatever the size of the run.
    found = _ratio(_commits([190, 2000, 42] * 2, [100, 1000, 20] * 2), is_, within)
    assert found["estimate"] == pytest.approx(2)
    assert (found["low"], found["high"]) == pytest.approx((1.9, 2.1))  # the range
    assert found["verdict"] == verdict
    assert found["claim"] == f"a against b: ratio of commits is {is_} to {within}"
    assert found["measured"].startswith("ratio of commits: 2.00 [1.90, 2.10]")


@pytest.mark.parametrize(
    ("is_", "within", "verdict"),
    [(3, 0, "holds"), (2.5, 0.5, "holds"), (2, 0.9, "does not hold")],
)
def test_ratio_of_deterministic_runs(is_: float, within: float, verdict: str) -> None:
    found = _ratio(_commits([300] * 6, [100] * 6), is_, within)
    assert found["high"] - found["low"] < 1e-12
    assert found["verdict"] == verdict


def test_ratio_of_what_the_last_evaluation_counts() -> None:
    # 10 commits a second: evaluated to 10 s and to 5 s.
    study = Curves({"a": [arrives(1)] * 6, "b": [arrives(1, 6)] * 6})
    for of in ("bytes", "messages", "rounds", "epochs"):
        found = _ratio(study, 2, 0.01, of=of)
        assert found["estimate"] == pytest.approx(2)
        assert found["verdict"] == "holds"


def test_ratio_where_there_is_none() -> None:
    found = _ratio(_commits([1, 2, 3] * 2, [0, 1, 1] * 2), 2, 1)
    assert found["verdict"] == "undecided"
    assert "; 2 pairs without a ratio of numbers above 0; p" in found["why"]
    for of, why in (("objective", "no column '"), ("epsilon", "no run accounts for")):
        assert why in _ratio(_commits([1, 2], [1, 1]), 2, 1, of=of)["why"]


@pytest.mark.parametrize(
    ("is_", "within", "verdict"),
    [(0.8, 0.05, "holds"), (0.8, 0.005, "undecided"), (0.7, 0.05, "does not hold")],
)
def test_value(is_: float, within: float, verdict: str) -> None:
    study = Curves({"a": [[0.79], [0.8], [0.81]] * 2})
    found = judged(study, value="a", within=within, **{"is": is_})
    assert (found["low"], found["high"]) == pytest.approx((0.79, 0.81))  # the range
    assert found["verdict"] == verdict
    assert found["claim"] == f"a: test_accuracy is {is_} to {within}"
    assert found["measured"] == "test_accuracy: 0.800 [0.790, 0.810]"


def test_commits_until_runs_stopped_at_their_target() -> None:
    study = Curves({"a": [arrives(1)] * 6, "b": [arrives(1)] * 6})
    for run in study.manifest["runs"]:
        slow = run["variant"] == "b"
        run |= {"commits": 1001 + run["replicate"] if slow else 13, "stop": "target"}
    found = judged(study, fewer="a", than="b", by_at_least=2)
    assert found["verdict"] == "holds"
    # They ended between evaluations: by a mean over commits, which is exact.
    ends = found["low"], found["high"]
    assert ends == (pytest.approx(77), pytest.approx(1006 / 13))
    assert found["claim"] == "a in fewer commits than b to the target, 2 times"
    for run in study.manifest["runs"]:
        run["stop"] = "commits" if run["variant"] == "b" else "target"
    found = judged(study, fewer="a", than="b", by_at_least=10)
    assert found["verdict"] == "holds"
    assert "; b did not always reach the target" in found["why"]
    # An evaluation that ends a run knows it up to the one before.
    last = study.tables["evaluations"].groupby("run")["commits"].nlargest(2)
    for run in study.manifest["runs"]:
        before, end = sorted(last[run["run"]])
        run |= {"commits": end, "stop": "target"}
    found = judged(study, fewer="a", than="b")
    ends = found["low"], found["high"]
    assert ends == (pytest.approx(before / end), pytest.approx(end / before))


def test_groups_and_metrics_that_are_not_there() -> None:
    assert claims.evaluate(Curves({"a": [[0.9]]})).empty  # without claims
    for groups, claim, why in (
        ("a", {"higher": "a"}, "the study has no finished runs of 'b'"),
        ("ab", {"faster": "a", "to": {"objective": 0.1}}, "no column 'objective'"),
    ):
        found = judged(Curves({g: [[0.9]] * 6 for g in groups}), than="b", **claim)
        assert found["verdict"] == "undecided"
        assert why in found["why"]


def test_an_unfinished_study_says_how_much_it_compared() -> None:
    study = Curves({"a": [arrives(1)] * 5, "b": [arrives(4)] * 5})
    study.manifest["runs"][1]["stop"] = "incomplete"
    found = judged(study, faster="a", than="b", to=TO)
    assert found["replicates"] == 4
    assert "; 4 of 5 replicates can be compared; p" in found["why"]
    alone = Curves({"a": [[0.5]], "b": [[0.5]]})
    found = judged(alone, close="a", than="b", within=0.01)
    assert found["verdict"] == "not decidable"
    assert math.isnan(found["low"])


def _evaluated(study: Any, *said: dict[str, Any]) -> pd.DataFrame:
    study.manifest["scenario"]["claims"] = [
        {"metric": "test_accuracy", "says": "figure 6"} | claim for claim in said
    ]
    return claims.evaluate(study)


def test_a_sweep_is_judged_at_each_point() -> None:
    ends = {("a", 1): 0.9, ("a", 2): 0.1, ("b", 1): 0.5, ("b", 2): 0.5}
    points = [(name, {"q": q}, [v] * 7) for (name, q), v in ends.items()]
    study = Grid(points)
    frame = _evaluated(study, {"higher": "a", "than": "b"})
    assert frame["verdict"].tolist() == ["holds", "does not hold"]
    assert frame["claim"][1] == "a, q=2 higher than b, q=2 in test_accuracy"
    values = _evaluated(study, {"value": "a", "is": 0.9, "within": 0.1})
    assert values["verdict"].tolist() == ["holds", "does not hold"]
    none = _evaluated(study, {"higher": "a", "than": "b, q=1"})
    assert none["verdict"].tolist() == ["undecided"]
    # What is not swept is compared at every point.
    frame = _evaluated(
        Grid([*points, ("c", {}, [0.95] * 7)]), {"higher": "c", "than": "a"}
    )
    assert frame["verdict"].tolist() == ["holds", "holds"]
    assert "c higher than a, q=2" in frame["claim"][1]


def test_what_is_swept_over_fewer_keys_is_compared_where_these_agree() -> None:
    """Of a (epsilon and commits) and b (commits alone), at equal commits."""
    noise = np.array([0.0, 0.01, 0.02] * 3)
    points = [("a", {"e": e, "n": 60}, e + noise) for e in (0.5, 0.7)]
    points += [("b", {"n": n}, [v] * 9) for n, v in ((300, 0.1), (60, 0.9))]
    study = Grid(points)
    either = [{"higher": "b", "than": "a"}, {"higher": "a", "than": "b"}]
    frame = _evaluated(study, *either)
    assert frame["verdict"].tolist() == ["holds"] * 2 + ["does not hold"] * 2
    assert "b, n=60 higher than a, e=0.5, n=60" in frame["claim"][0]
    assert "a, e=0.7, n=60 higher than b, n=60" in frame["claim"][3]


def test_two_targets_in_one_study_are_told_apart() -> None:
    arrived = {"a": (1, 2, 3) * 3, "b": (3, 5, 7) * 3}
    study = Curves({name: [arrives(n) for n in at] for name, at in arrived.items()})
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
