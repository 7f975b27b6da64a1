"""Paired differences to a baseline, worked out by hand."""

import math

import numpy as np
import pytest
import scipy.stats

from stalesim.analysis import bounds, paired
from stalesim.analysis.claims import evaluate
from stalesim.analysis.statistics import confidence
from tests.unit.analysis.studies import Curves, arrives

HALF = 4.302653 / math.sqrt(3)  # of an interval: t(0.975, 2) / sqrt(n), times s


def test_differences_are_paired() -> None:
    # Finals spread over 0.4; within a replicate they differ by 0.09, 0.1 and 0.11.
    base, more = np.array([0.4, 0.6, 0.8]), np.array([0.09, 0.1, 0.11])
    study = Curves({"b": [[x] * 3 for x in base], "a": [[x] * 3 for x in base + more]})
    table = paired.against(study, "b", target=0.45)
    assert table.columns.tolist() == ["variant", *paired.COLUMNS]
    assert table["group"].unique().tolist() == ["a"]
    row = table.set_index("quantity").loc["final"]
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


def test_times_as_fast_are_those_of_a_claim() -> None:
    """Medians over pairs, by hand and as claims have them; a side may be late."""
    arrived = {"b": (6, 7, 9), "a": (2, 3, 3), "never": (99, 99, 5)}
    groups = {name: [arrives(n) for n in at] for name, at in arrived.items()}
    claims = [
        {"faster": name, "than": "b", "to": {"test_accuracy": 0.9}, "says": "x"}
        for name in ("a", "never")
    ]
    study = Curves(groups, claims=claims)
    found = paired.times_as_fast(study, "b", "test_accuracy", 0.9).set_index("group")
    # 5 to 6 over 1 to 2, 6 to 7 over 2 to 3, 8 to 9 over 2 to 3.
    least, most = np.median([5 / 2, 6 / 3, 8 / 3]), np.median([6 / 1, 7 / 2, 9 / 2])
    assert found.loc["a", "ratio"] == pytest.approx(math.sqrt(least * most))
    assert found.loc["a", ["low", "high"]].tolist() == pytest.approx([2, 6])
    assert found["bound"].tolist() == ["", "", "≤"]
    # After 10 s two of three had not arrived: 6 / 10 and 7 / 10 at most.
    assert found.loc["never", "ratio"] == pytest.approx(0.7)
    assert found.loc["b"].tolist() == ["b", 1, 1, 1, ""]
    for (_, claim), name in zip(
        evaluate(study).iterrows(), ("a", "never"), strict=True
    ):
        assert claim["estimate"] == pytest.approx(found.loc[name, "ratio"])
        assert f"{found.loc[name, 'ratio']:.1f} [" in claim["measured"]


@pytest.mark.parametrize(("replicates", "every"), [(6, 0.5), (10, 0.05), (10, 2.0)])
def test_intervals_of_ratios_hold_them_on_any_grid(
    replicates: int, every: float
) -> None:
    """Of lognormal times whose ratio's median is 2, seen on a grid and until 8 s."""
    generator, draws = np.random.default_rng(replicates), 2_000
    common = generator.lognormal(0.0, 0.5, (draws, replicates, 1))
    times = common * generator.lognormal([0.7, 0.0], 0.4, (draws, replicates, 2))
    times *= [2 / math.exp(0.7), 1]
    seen = every * np.ceil(times / every)
    high, low = np.where(seen <= 8, seen, math.inf), np.minimum(seen - every, 8)
    held = 0
    for one in range(draws):
        logs = bounds.logarithm(bounds.Sample(low[one], high[one]))
        ends = bounds.interval(bounds.contrast(logs, np.array([1.0, -1.0])))[1:]
        held += ends[0] <= math.log(2) <= ends[1]
    # By chance alone as few are held in one of 10,000 such tests.
    promised = confidence(replicates)
    assert scipy.stats.binom.cdf(held, draws, promised) > 1e-4


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
    back = paired.against(study, "a", "test_loss").set_index("quantity").loc["final"]
    assert (back["low"], back["high"]) == (pytest.approx(-bound.high), math.inf)


def test_targets_of_another_metric_are_not_used() -> None:
    study = Curves({"a": [[0.9]] * 3, "b": [[0.5]] * 3})
    study.manifest["scenario"]["stop"]["target"] = {"test_accuracy": 0.7}
    found = paired.against(study, "b")
    assert found["quantity"].tolist() == ["final", "to target"]
    table = study.tables["evaluations"]
    study.tables["evaluations"] = table.assign(mine=1.0)
    assert paired.against(study, "b", "mine")["quantity"].tolist() == ["final"]


def test_a_baseline_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="no variant 'c'; known are a"):
        paired.against(Curves({"a": [[0.9]]}), "c")
