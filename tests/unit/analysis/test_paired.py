"""Paired differences to a baseline, worked out by hand."""

import math

import numpy as np
import pytest
import scipy.stats

from stalesim.analysis import paired
from tests.unit.analysis.studies import Curves, arrives

HALF = 4.302653 / math.sqrt(3)  # of an interval: t(0.975, 2) / sqrt(n), times s


def test_differences_are_paired() -> None:
    # Finals spread over 0.4; within a replicate they differ by 0.09, 0.1 and 0.11.
    base, more = np.array([0.4, 0.6, 0.8]), np.array([0.09, 0.1, 0.11])
    study = Curves({"b": [[x] * 3 for x in base], "a": [[x] * 3 for x in base + more]})
    table = paired.against(study, "b", target=0.45)
    assert table.columns.tolist() == list(paired.Difference._fields)
    assert table["group"].unique().tolist() == ["a"]
    for quantity in ("final", "area"):  # constant curves: the same
        row = table.set_index("quantity").loc[quantity]
        assert row["difference"] == pytest.approx(0.1)
        assert row["low"] == pytest.approx(0.1 - HALF * 0.01)
        assert row["high"] == pytest.approx(0.1 + HALF * 0.01)
        assert row[["pairs", "replicates"]].tolist() == [3, 3]
        assert row["mean"] == pytest.approx(0.7)
        assert row["baseline"] == pytest.approx(0.6)


def test_times_to_target() -> None:
    study = Curves(
        {"a": [arrives(n) for n in (1, 2, 3)], "b": [arrives(n) for n in (3, 5, 5)]}
    )
    for counted, unit in (("time", 1), ("commits", 10), ("bytes", 10_010_000)):
        table = paired.against(study, "b", counted=counted, target=0.9)
        row = table.set_index("quantity").loc["to target"]
        # Each lies between two evaluations: -3 to -1, -4 to -2, -3 to -1.
        least, most = (
            scipy.stats.ttest_1samp(x, 0).confidence_interval(0.95)
            for x in ([-3, -4, -3], [-1, -2, -1])
        )
        assert row["difference"] == pytest.approx(-7 / 3 * unit)
        assert row["low"] == pytest.approx(least.low * unit)
        assert row["high"] == pytest.approx(most.high * unit)


def test_a_side_that_did_not_arrive_bounds_the_difference() -> None:
    # The horizon is 10 s: differences of at most -9, -8 and, between evaluations, 0.
    groups = {"a": [arrives(1), arrives(2), arrives(4)], "b": [arrives(99)] * 2}
    groups["b"].append(arrives(5))
    bound = scipy.stats.ttest_1samp([-9, -8, 0], 0).confidence_interval(0.95)
    table = paired.against(Curves(groups), "b", target=0.9).set_index("quantity")
    row = table.loc["to target"]
    assert math.isnan(row["difference"])
    assert row["low"] == -math.inf
    assert row["high"] == pytest.approx(bound.high)
    assert row[["pairs", "replicates", "mean", "baseline"]].tolist() == [1, 3, 4, 5]
    row = paired.against(Curves(groups), "a", target=0.9).set_index("quantity")
    row = row.loc["to target"]
    assert row["high"] == math.inf
    assert row["low"] == pytest.approx(-bound.high)


def test_sides_that_both_did_not_arrive_say_nothing() -> None:
    groups = {"a": [arrives(1), arrives(99)], "b": [arrives(99), arrives(1)]}
    table = paired.against(Curves(groups), "b", target=0.9).set_index("quantity")
    row = table.loc["to target"]
    assert row[["difference", "low", "high", "mean"]].isna().all()
    assert row[["pairs", "replicates"]].tolist() == [0, 2]


def test_runs_that_diverged_have_the_worst_value() -> None:
    study = Curves({"a": [[0.9]] * 3, "b": [[0.5]] * 3}, {("b", 1): "diverged"})
    row = paired.against(study, "b").set_index("quantity").loc["final"]
    assert row[["pairs", "replicates"]].tolist() == [3, 3]
    assert row["difference"] == pytest.approx((0.4 + 0.9 + 0.4) / 3)


def test_a_loss_that_diverged_bounds_the_difference() -> None:
    study = Curves({"a": [[0.9] * 3] * 3, "b": [[0.5] * 3] * 3}, {("b", 1): "diverged"})
    table = study.tables["evaluations"]
    loss = np.where(table["time"] == 0, 4.0, 1.0) + 0.1 * (table["run"] < 3)
    study.tables["evaluations"] = table.assign(test_loss=loss)
    table = paired.against(study, "b", "test_loss").set_index("quantity")
    row = table.loc["final"]
    # The worst loss of the study is the 4.1 at which `a` began.
    bound = scipy.stats.ttest_1samp([0.1, 1.1 - 4.1, 0.1], 0).confidence_interval(0.95)
    assert math.isnan(row["difference"])
    assert (row["low"], row["high"]) == (-math.inf, pytest.approx(bound.high))
    known = row[["pairs", "replicates", "mean", "baseline"]].tolist()
    assert known == pytest.approx([2, 3, 1.1, 1.0])
    assert math.isnan(table.loc["area", "difference"])
    back = paired.against(study, "a", "test_loss").set_index("quantity").loc["final"]
    assert (back["low"], back["high"]) == (pytest.approx(-bound.high), math.inf)


def test_targets_of_another_metric_are_not_used() -> None:
    study = Curves({"a": [[0.9]] * 3, "b": [[0.5]] * 3})
    study.manifest["scenario"]["stop"]["target"] = {"test_accuracy": 0.7}
    found = paired.against(study, "b")
    assert found["quantity"].tolist() == ["final", "area", "to target"]
    table = study.tables["evaluations"]
    study.tables["evaluations"] = table.assign(mine=1.0)
    assert paired.against(study, "b", "mine")["quantity"].tolist() == ["final", "area"]


def test_a_baseline_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="no group 'c'; known are a"):
        paired.against(Curves({"a": [[0.9]]}), "c")
