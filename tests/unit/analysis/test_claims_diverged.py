"""Runs that diverged: the worst value, never left out, whatever a claim is about."""

import math
from typing import Any

import numpy as np
import pytest

from stalesim.analysis import escapes
from tests.unit.analysis.studies import Curves, Decays, Grid, arrives, judged

LOST = "diverged"


def _losses(groups: dict[str, list[list[float]]], *lost: tuple[str, int]) -> Curves:
    """Returns a study of test losses."""
    study = Curves(groups, dict.fromkeys(lost, LOST))
    table = study.tables["evaluations"]
    study.tables["evaluations"] = table.rename(columns={"test_accuracy": "test_loss"})
    return study


def _all(group: str, replicates: int = 6) -> list[tuple[str, int]]:
    return [(group, replicate) for replicate in range(replicates)]


def test_case_3_of_adp2sgd_is_decided() -> None:
    # All diverge where the other method ends at 0.89.
    study = Curves(
        {"adp": [[0.3]] * 6, "sync": [[0.876], [0.902], [0.9055]] * 2},
        dict.fromkeys(_all("adp"), LOST),
    )
    found = judged(study, higher="adp", than="sync")
    assert found["verdict"] == "does not hold"
    assert found["estimate"] == pytest.approx(-0.902)
    assert found["replicates"] == 6
    assert "; 6 of adp diverged, at most 0; p" in found["why"]
    assert judged(study, higher="sync", than="adp")["verdict"] == "holds"
    for kind in ("no_worse", "close"):
        found = judged(study, **{kind: "adp"}, than="sync", within=0.02)
        assert found["verdict"] == "does not hold"
    assert judged(study, no_worse="sync", than="adp", within=0.0)["verdict"] == "holds"


def test_one_that_diverged_counts_as_one() -> None:
    """As bad as the worst, or worse; the typical run does not see it."""
    study = Curves(
        {"a": [[0.9]] * 6, "b": [[0.5], [0.51], [0.5], [0.51], [0.5], [0.5]]},
        {("b", 1): LOST},
    )
    found = judged(study, higher="a", than="b")
    assert (found["low"], found["high"]) == (pytest.approx(0.39), math.inf)
    assert found["estimate"] == pytest.approx(0.4)
    assert found["verdict"] == "holds"
    assert "; 1 of b diverged, at most 0" in found["why"]
    chance = 1 - 0.05 ** (1 / 6)
    said = escapes.chance(study)
    assert f"0 of 6 of a, at most {100 * chance:.0f} % of such runs" in said
    assert "; 1 of 6 of b, at most 58 % of such runs (95 %)" in said


def test_none_of_five_may_still_be_many() -> None:
    study = Curves({"a": [[0.9]] * 5, "b": [[0.5]] * 5})
    said = "diverged: 0 of 5 of each variant, at most 45 % of such runs (95 %)"
    assert escapes.chance(study) == said


def test_a_loss_that_diverged_opens_the_interval() -> None:
    sound = [[4.0, 1.0], [4.0, 1.1], [4.0, 0.9], [4.0, 1.0]] * 2
    study = _losses({"a": sound, "b": [[4.0, 0.5]] * 8}, ("a", 2), ("a", 5))
    found = judged(study, higher="a", than="b", metric="test_loss")
    # The worst that was seen is the loss of 4 with which all began.
    assert (found["low"], found["high"]) == (pytest.approx(0.4), math.inf)
    assert "; 2 of a diverged, at least 4; " in found["why"]
    # They may be any larger: six of eight are not enough to say that they are close.
    found = judged(study, close="a", than="b", metric="test_loss", within=9.0)
    assert found["verdict"] == "undecided"
    found = judged(study, no_worse="a", than="b", metric="test_loss", within=9.0)
    assert found["verdict"] == "undecided"
    found = judged(study, no_worse="b", than="a", metric="test_loss", within=0.1)
    assert found["verdict"] == "holds"


def test_a_loss_that_diverged_everywhere_and_nowhere_is_decided() -> None:
    study = _losses({"a": [[1.5, 0.9]] * 6, "b": [[1.5, 1.0]] * 6}, *_all("a"))
    found = judged(study, higher="a", than="b", metric="test_loss")
    assert found["verdict"] == "holds"
    assert (found["low"], found["high"]) == (0.5, math.inf)
    found = judged(study, no_worse="a", than="b", metric="test_loss", within=0.2)
    assert found["verdict"] == "does not hold"
    # Of a pair in which both diverged nothing is known.
    lost = *_all("a"), ("b", 0)
    study = _losses({"a": [[1.5, 0.9]] * 6, "b": [[1.5, 1.0]] * 6}, *lost)
    found = judged(study, higher="a", than="b", metric="test_loss")
    assert found["verdict"] == "undecided"
    assert (found["low"], found["high"]) == (-math.inf, math.inf)


def test_the_value_of_what_diverged() -> None:
    study = Curves({"a": [[0.8], [0.81], [0.79]] * 2}, {("a", 1): LOST})
    found = judged(study, value="a", within=0.05, **{"is": 0.8})
    assert (found["low"], found["high"]) == (-math.inf, 0.81)
    study = _losses({"a": [[0.8], [0.81], [0.79]] * 2}, ("a", 1))
    found = judged(study, value="a", within=0.5, metric="test_loss", **{"is": 0.8})
    assert (found["verdict"], found["high"]) == ("undecided", math.inf)
    found = judged(study, value="a", within=0.1, metric="test_loss", **{"is": 0.5})
    assert found["verdict"] == "does not hold"


def test_ratios_with_what_diverged_are_bounds() -> None:
    # A ratio to 0, or to less, is infinite.
    study = Curves({"a": [[0.8]] * 6, "b": [[0.4]] * 5 + [[0.1]]}, {("b", 5): LOST})
    more: dict[str, Any] = {"of": "test_accuracy", "within": 0.01}
    found = judged(study, ratio="a", than="b", **more, **{"is": 2})
    assert found["verdict"] == "undecided"
    assert (found["low"], found["high"]) == (pytest.approx(2), math.inf)
    assert "; 1 of b diverged, at most 0" in found["why"]
    found = judged(study, ratio="a", than="b", **more, **{"is": 1.5})
    assert found["verdict"] == "does not hold"
    # What a run has come to when it breaks off is no more than it would have been.
    more = {"of": "commits", "within": 0.1}
    found = judged(study, ratio="a", than="b", **more, **{"is": 1})
    assert (found["low"], found["high"]) == (0, pytest.approx(1))


def test_slopes_of_what_diverged() -> None:
    commits = np.arange(0, 1001, 50)
    falls = [(commits, np.maximum(commits, 1.0) ** b) for b in (-1.0, -1.01, -0.99) * 2]
    more: dict[str, Any] = {"metric": "optimality_gap", "within": 0.1, "is": -1}
    study = Decays({"a": falls}, {("a", 2): LOST})
    found = judged(study, slope="a", **more)
    assert found["verdict"] == "undecided"
    assert found["estimate"] == pytest.approx(-1)
    assert found["high"] == math.inf
    assert "; 1 replicates diverged and do not fall" in found["why"]
    study = Decays({"a": falls}, dict.fromkeys(_all("a"), LOST))
    found = judged(study, slope="a", **more)
    assert found["verdict"] == "does not hold"
    # Over horizons: a replicate one of whose runs diverged does not fall, either.
    short = [(commits // 10, gap) for _, gap in falls]
    study = Decays({"a": falls, "b": short}, dict.fromkeys(_all("b"), LOST))
    found = judged(study, slope=["a", "b"], **more)
    assert found["verdict"] == "does not hold"
    assert found["estimate"] == 0


def test_sweeps_over_what_diverged() -> None:
    points = [
        ("a", {"rate": x}, [0.5 + 0.1 * x + 0.001 * r for r in range(9)])
        for x in (1, 2, 3)
    ]
    study = Grid(points)
    claim = {"monotone": "a", "over": "rate"}
    assert judged(study, **claim)["verdict"] == "holds"
    for run in study.manifest["runs"]:
        run["stop"] = LOST if run["parameters"]["rate"] == 3 else "time"
    found = judged(study, **claim)
    assert found["verdict"] == "does not hold"
    assert found["measured"].startswith("smallest rise, 2 to 3: at most -0.7")
    assert "; 9 runs diverged and are as bad as the worst, or worse" in found["why"]
    found = judged(study, steady="a", over="rate", within=0.2)
    assert found["verdict"] == "does not hold"
    assert found["high"] < -0.7


def test_a_loss_that_diverges_at_the_end_of_a_sweep_rises() -> None:
    points = [("a", {"x": x}, [1.0 + 0.001 * r for r in range(6)]) for x in (1, 2)]
    study = Grid(points)
    table = study.tables["evaluations"]
    loss = np.where(table["time"] == 0, 3.0, table["test_accuracy"])
    study.tables["evaluations"] = table.assign(test_loss=loss)
    for run in study.manifest["runs"]:
        run["stop"] = LOST if run["parameters"]["x"] == 2 else "time"
    found = judged(study, monotone="a", over="x", metric="test_loss")
    assert found["verdict"] == "holds"
    assert found["high"] == math.inf
    found = judged(study, steady="a", over="x", metric="test_loss", within=0.1)
    assert found["verdict"] == "does not hold"


def test_a_run_that_diverged_has_not_stopped_at_its_target() -> None:
    study = Curves({"a": [arrives(1)] * 6, "b": [arrives(1)] * 6})
    for run in study.manifest["runs"]:
        run |= {"commits": 900, "stop": "target"}
        if run["variant"] == "b":
            # They broke off after few commits; that is not to have needed few.
            run |= {"commits": 100, "stop": LOST}
    # It never would have.
    assert judged(study, fewer="b", than="a")["verdict"] == "does not hold"
    assert judged(study, fewer="a", than="b", by_at_least=99)["verdict"] == "holds"


def test_what_diverged_everywhere_is_not_alike() -> None:
    lost = dict.fromkeys([*_all("a"), *_all("b")], LOST)
    study = Curves({"a": [[0.9]] * 6, "b": [[0.5]] * 6}, lost)
    for kind in ("close", "no_worse"):
        found = judged(study, **{kind: "a"}, than="b", within=0.1)
        assert found["verdict"] == "undecided"
        assert found["p"] == 1
    points = Grid([("a", {"x": x}, [0.5, 0.6, 0.7] * 2) for x in (1, 2)])
    for run in points.manifest["runs"]:
        run["stop"] = LOST
    found = judged(points, steady="a", over="x", within=0.1)
    assert found["verdict"] == "undecided"


def test_a_last_value_that_is_no_number_has_diverged() -> None:
    study = Curves({"a": [[0.9, 0.9]] * 3, "b": [[0.5, 0.5]] * 3})
    table = study.tables["evaluations"]
    broken = (table["run"] == 4) & (table["time"] == 1)
    table.loc[broken, "test_accuracy"] = math.nan
    found = judged(study, higher="a", than="b")
    assert (found["low"], found["high"]) == (pytest.approx(0.4), math.inf)
