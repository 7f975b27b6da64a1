"""Values of a metric at an instant, and claims on who is ahead there."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import claims
from stalesim.analysis.instants import Instant, stated, value_at, values_at
from stalesim.simulator.files.study import StudyError, StudyWarning
from tests.unit.analysis.studies import Curves, judged

CLAIM = {"ahead": "a", "than": "b", "after": {"time": 3}, "says": "figure 1"}
RISING = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def at(study: Any, instant: float, counted: str = "time") -> list[float]:
    return values_at(study, "test_accuracy", instant, counted)["value"].to_list()


def slow_value(curve: list[float], instant: float, worst: float | None) -> float:
    """Returns the value at an instant of a curve at 0, 1, 2, ... s, by looking."""
    found = float("nan")
    for second, value in enumerate(curve):
        if second <= instant:
            found = value
    if instant > len(curve) - 1:
        return float("nan") if worst is None else worst
    return found


@pytest.mark.parametrize("instant", [0, 0.99, 1, 3.5, 4, 5, 5.01, 7])
@pytest.mark.parametrize(("stop", "worst"), [("time", None), ("diverged", 0.0)])
def test_the_last_evaluation_until_then_counts(
    instant: float, stop: str, worst: float | None
) -> None:
    found = Curves({"a": [RISING, RISING[:3]]}, {("a", 0): stop, ("a", 1): stop})
    wanted = [slow_value(curve, instant, worst) for curve in (RISING, RISING[:3])]
    np.testing.assert_array_equal(at(found, instant), wanted)


def test_other_counts_than_seconds() -> None:
    found = Curves({"a": [RISING]})  # 10 commits, or 1.001 MB, from one to the next
    assert at(found, 29, "commits") == [0.3]
    assert at(found, 30, "commits") == [0.4]
    assert at(found, 20 * 1_001_000, "bytes") == [0.3]
    with pytest.raises(StudyError, match="no column 'tim'"):
        values_at(found, "test_accuracy", 1, "tim")
    with pytest.raises(StudyError, match="did you mean 'test_accuracy'"):
        values_at(found, "test_auc", 1)


def test_what_stalled_stays_and_what_stopped_does_not() -> None:
    stops = {("a", 0): "stalled", ("a", 1): "target"}
    found = Curves({"a": [RISING, RISING]}, stops)
    np.testing.assert_array_equal(at(found, 9), [0.6, np.nan])


def test_a_run_lasts_beyond_its_last_evaluation() -> None:
    found = Curves({"a": [RISING]})
    found.manifest["runs"][0]["virtual_s"] = 5.9
    assert at(found, 5.8) == [0.6]
    assert np.isnan(at(found, 6)).all()


def test_a_mean_beyond_the_end_says_so() -> None:
    found = Curves({"a": [RISING] * 2, "b": [RISING[:3]] * 2})
    with pytest.warns(StudyWarning, match="no run of b lasted for 4 s: there is no"):
        table = value_at(found, "test_accuracy", 4)
    assert table["known"].tolist() == [2, 0]


def test_a_loss_without_a_worst_value_is_only_bounded() -> None:
    found = Curves({"a": [RISING, RISING[:3]]}, {("a", 1): "diverged"})
    table = found.tables["evaluations"]
    found.tables["evaluations"] = table.assign(test_loss=9 - table["test_accuracy"])
    rows = values_at(found, "test_loss", 4)
    assert rows["low"].to_list() == [8.5, 8.9]
    assert rows["high"].to_list() == [8.5, np.inf]
    assert rows["value"].to_list() == [8.5, 8.9]
    mean = value_at(found, "test_loss", 4).iloc[0]
    assert np.isnan(mean["mean"])
    assert (mean["known"], mean["replicates"]) == (2, 2)


def test_means_have_t_intervals() -> None:
    curves = [[0.1, x] for x in (0.4, 0.5, 0.6)]
    row = value_at(Curves({"a": curves}), "test_accuracy", 1).iloc[0]
    half = 4.302652729911275 * 0.1 / 3**0.5  # t(2) at 0.975
    assert row["mean"] == pytest.approx(0.5)
    assert row["high"] - row["mean"] == pytest.approx(half)
    assert row["mean"] - row["low"] == pytest.approx(half)


def test_words_of_instants() -> None:
    assert str(Instant("time", 60.0)) == "60 s"
    assert str(Instant("commits", 500)) == "500 commits"


def ahead(a: list[Any], b: list[Any], stops: Any = None, **more: Any) -> pd.Series:
    study = Curves({"a": a * 2, "b": b * 2}, stops)  # six replicates
    return judged(study, **CLAIM | more)


def shifted(*by: float) -> list[list[float]]:
    return [[x + d for x in RISING] for d in by]


def test_pairs_decide_who_is_ahead() -> None:
    one, other = shifted(0.3, 0.2, 0.1), shifted(0.2, 0.11, -0.01)
    found = ahead(one, other)
    assert found["estimate"] == pytest.approx(0.1)
    assert found["verdict"] == "holds"  # though the curves of the groups overlap
    assert found["claim"] == "a ahead of b in test_accuracy after 3 s"
    assert ahead(other, one)["verdict"] == "does not hold"
    assert ahead(one, other, by=0.05)["verdict"] == "holds"
    assert ahead(one, other, by=0.2)["verdict"] == "does not hold"
    assert ahead(one, other, by=0.1)["verdict"] == "undecided"


def test_only_the_instant_counts() -> None:
    early = [[0.1, 0.9, 0.9, 0.9, 0.2, 0.2 + d] for d in (0, 0.01, 0.02)]
    late = [[0.1, 0.1, 0.1, 0.1, 0.9, 0.9 + d] for d in (0, 0.01, 0.02)]
    early[1][3] = 0.91
    assert ahead(early, late)["verdict"] == "holds"
    assert ahead(early, late, after={"commits": 45})["verdict"] == "does not hold"


def test_who_diverged_before_is_worst_and_who_did_so_later_is_not() -> None:
    one, other = shifted(0.3, 0.2, 0.1), shifted(0.2, 0.11, -0.01)
    other[0] = other[0][:2]
    found = ahead(one, other, {("b", 0): "diverged"})
    assert found["high"] == np.inf
    assert "1 of b diverged, at most 0" in found["why"]
    later = ahead(one, shifted(0.2, 0.11, -0.01), {("b", 0): "diverged"})
    assert "diverged" not in later["why"]
    assert later["estimate"] == pytest.approx(0.1)


def test_an_instant_beyond_the_runs_decides_nothing() -> None:
    found = ahead(shifted(0.3, 0.2, 0.1), shifted(0, 0, 0), after={"time": 50})
    assert found["verdict"] == "undecided"
    assert "6 of a without a value after 50 s" in found["why"]


def test_a_smaller_loss_is_ahead() -> None:
    study = Curves({"a": shifted(0, 0.01, 0.02) * 2, "b": shifted(0.3, 0.32, 0.31) * 2})
    table = study.tables["evaluations"]
    study.tables["evaluations"] = table.assign(test_loss=table["test_accuracy"])
    study.manifest["scenario"]["claims"] = [CLAIM | {"metric": "test_loss"}]
    assert claims.evaluate(study)["verdict"].to_list() == ["holds"]
    assert stated(study) == [("test_loss", Instant("time", 3.0))]
