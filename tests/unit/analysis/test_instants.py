"""Values of a metric at an instant."""

from typing import Any

import numpy as np
import pytest

from stalesim.analysis.instants import in_words, value_at, values_at
from stalesim.simulator.files.study import StudyError, StudyWarning
from tests.unit.analysis.studies import Curves

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
    assert in_words(60.0) == "60 s"
    assert in_words(500, "commits") == "500 commits"
