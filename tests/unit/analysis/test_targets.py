import math

import numpy as np
import pytest
import scipy.stats

from stalesim.analysis import curves, figures, targets
from stalesim.simulator.files.study import StudyError
from tests.unit.analysis.studies import Curves, arrives


def test_mean_curve() -> None:
    study = Curves({"a": [[0.1, 0.2, 0.4], [0.3, 0.6, 0.5], [0.2, 0.4, 0.6, 0.7]]})
    frame = curves.mean_curve(study, "a", points=5)
    np.testing.assert_allclose(frame["x"], [0, 0.5, 1, 1.5, 2])
    np.testing.assert_allclose(frame["mean"], [0.2, 0.2, 0.4, 0.4, 0.5])
    half = scipy.stats.t.ppf(0.975, 2) * 0.1 / math.sqrt(3)
    np.testing.assert_allclose(frame["high"][[0, 4]], [0.2 + half, 0.5 + half])
    assert set(frame["replicates"]) == {3}
    frame = curves.mean_curve(study, "a", against="upload_bytes", points=5)
    assert frame["x"].iloc[-1] == 20_000_000
    for against in ("commits", "contributions", "epochs", "download_bytes"):
        assert curves.mean_curve(study, "a", against=against)["mean"].notna().all()


def test_a_mean_curve_has_each_value_at_the_time_of_its_evaluation() -> None:
    study = Curves({"a": [[0.1, 0.2, 0.4], [0.3, 0.6, 0.5, 0.7]]})
    table = study.tables["evaluations"]
    table["time"] = [0, 2, 4, 0, 2, 2.5, 5]
    frame = curves.mean_curve(study, "a")
    assert frame["x"].tolist() == [0, 2, 2.5, 4]
    np.testing.assert_allclose(frame["mean"], [0.2, 0.4, 0.35, 0.45])
    (line, *_) = figures.convergence(study).axes[0].get_lines()
    np.testing.assert_array_equal(line.get_xdata(), frame["x"])
    many = np.arange(3001) / 3001
    frame = curves.mean_curve(Curves({"a": [many, many]}), "a")
    assert (len(frame), frame["x"].iloc[-1]) == (curves.MOST_POINTS, 3000)
    np.testing.assert_allclose(frame["mean"], frame["x"] / 3001)


def test_mean_curve_without_those_that_diverged() -> None:
    rows = {"a": [[0.1, 0.5, 0.6], [0.3, 0.7, 0.8], [0.9]]}
    frame = curves.mean_curve(Curves(rows, {("a", 2): "diverged"}), "a", points=3)
    np.testing.assert_allclose(frame["mean"], [0.2, 0.6, 0.7])
    assert set(frame["replicates"]) == {2}
    all_lost = {("a", n): "diverged" for n in range(3)}
    frame = curves.mean_curve(Curves(rows, all_lost), "a", points=3)
    assert set(frame["x"]) == {0}
    assert set(frame["replicates"]) == {3}


def test_curves_of_what_is_not_there() -> None:
    study = Curves({"a": [arrives(1)]})
    with pytest.raises(StudyError, match="no column 'objective'; known are commits"):
        curves.mean_curve(study, "a", "objective")
    with pytest.raises(ValueError, match="no variant 'b'; known are a"):
        curves.mean_curve(study, "b")


def test_final_values_are_of_the_last_tenth() -> None:
    rising = [n / 30 for n in range(30)]
    study = Curves(
        {"a": [rising, [0.5], rising, []]}, {("a", 2): "diverged", ("a", 3): "stalled"}
    )
    found = targets.final_values(study, "test_accuracy")
    assert found["value"].tolist() == pytest.approx(
        [28 / 30, 0.5, math.nan, math.nan], nan_ok=True
    )
    assert found["replicate"].tolist() == [0, 1, 2, 3]


def test_time_to_target_of_groups() -> None:
    study = Curves(
        {"a": [arrives(n) for n in (1, 4, 2, 99, 3)], "b": [arrives(99)] * 5}
    )
    table = targets.time_to_target(study, "test_accuracy", 0.9).set_index("group")
    assert table.loc["a", "median"] == 3
    assert table.loc["a", ["reached", "replicates"]].tolist() == [4, 5]
    assert table.loc["b", "median"] == math.inf
    assert table.loc["b", ["reached", "replicates"]].tolist() == [0, 5]


def test_the_resolution_is_what_lies_between_evaluations() -> None:
    study = Curves({"a": [arrives(0), arrives(4), arrives(99)], "b": [arrives(2)] * 3})
    times = targets.times_to_target(study, "test_accuracy", 0.9)
    assert targets.resolution(times) == "resolution 1 s (between evaluations)"
    study.tables["evaluations"] = study.tables["evaluations"].query("time % 4 != 3")
    times = targets.times_to_target(study, "test_accuracy", 0.9)
    assert targets.resolution(times) == "resolution 1 to 2 s (between evaluations)"
    commits = targets.times_to_target(study, "test_accuracy", 0.9, "commits")
    said = targets.resolution(commits, "commits")
    assert said == "resolution 10 to 20 commits (between evaluations)"
    assert targets.resolution(times.query("not reached")) == ""


def test_a_run_that_diverged_will_never_arrive() -> None:
    # Lost at 1 s it may have arrived at any time after; one that diverged would not.
    at = {"a": [arrives(2), arrives(3), arrives(99, 2), arrives(99, 2), []]}
    lost = targets.times_to_target(Curves(at), "test_accuracy", 0.9)
    assert lost["low"].tolist() == [1, 2, 1, 1, 0]
    ends = {("a", 2): "diverged", ("a", 3): "stalled", ("a", 4): "diverged"}
    study = Curves(at, ends)
    times = targets.times_to_target(study, "test_accuracy", 0.9)
    assert times["time"].tolist() == [2, 3, 10, 10, 10]
    assert times["reached"].tolist() == [True, True, False, False, False]
    assert times["low"].tolist() == [1, 2, math.inf, math.inf, math.inf]
    assert times["high"].tolist() == [2, 3, math.inf, math.inf, math.inf]
    table = targets.time_to_target(study, "test_accuracy", 0.9)
    assert table["median"].tolist() == [math.inf]


def test_a_loss_is_reached_from_above() -> None:
    study = Curves({"a": [arrives(1)]})
    table = study.tables["evaluations"]
    study.tables["evaluations"] = table.assign(test_loss=10 - table["time"])
    table = targets.time_to_target(study, "test_loss", 6.5)
    assert table["median"].tolist() == [4]


def test_default_target() -> None:
    groups = {"a": [[0.8], [0.9]], "b": [[0.5], [0.6]]}
    found = targets.default_target(Curves(groups))
    assert found == ("test_accuracy", pytest.approx(0.95 * 0.85), False)
    claims = [
        {"higher": "a", "than": "b", "to": None},
        {"faster": "a", "than": "b", "to": {"objective": 0.1}},
        {"faster": "a", "than": "b", "to": {"test_accuracy": 0.7}},
    ]
    found = targets.default_target(Curves(groups, claims=claims))
    assert found == ("test_accuracy", 0.7, True)
    tune = {"over": {}, "objective": None}
    found = targets.default_target(Curves(groups, claims=claims, tune=tune))
    assert found == ("test_accuracy", 0.7, True)
    stop = {"target": {"test_accuracy": 0.6}}
    found = targets.default_target(Curves(groups, claims=claims, stop=stop))
    assert found == ("test_accuracy", 0.6, True)


def test_default_target_of_a_loss() -> None:
    study = Curves({"a": [[0.5]]}, evaluate={"metrics": ["test_loss"]})
    table = study.tables["evaluations"]
    study.tables["evaluations"] = table.assign(test_loss=0.19)
    assert targets.default_target(study) == ("test_loss", pytest.approx(0.2), False)


def test_a_metric_of_a_plug_in_that_is_not_here_has_no_direction() -> None:
    study = Curves({"a": [[0.9]], "b": [[0.5]]})
    table = study.tables["evaluations"]
    study.tables["evaluations"] = table.assign(mine=1.0)
    # A column of one's own falls, as a loss does.
    assert targets.times_to_target(study, "mine", 2.0)["reached"].all()
    study.manifest["scenario"]["evaluate"]["metrics"].append("mine")
    with pytest.raises(StudyError, match=r"'mine' must be a known one, .*register"):
        targets.times_to_target(study, "mine", 2.0)


@pytest.mark.parametrize("value", [1.5, -0.1, 93.0, math.nan])
def test_a_target_that_the_metric_cannot_have_is_refused(value: float) -> None:
    study = Curves({"a": [arrives(1)]})
    with pytest.raises(StudyError, match=r"test_accuracy must be >= 0 and <= 1, got"):
        targets.time_to_target(study, "test_accuracy", value)
