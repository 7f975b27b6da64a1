"""Claims on the mean over what is swept, such as networks."""

from typing import Any

import pandas as pd
import pytest

from analysis import claims
from tests.unit.analysis.studies import Grid

KEY = "problem.model.name"
CLAIM = {"no_worse_mean": "a", "than": "b", "over": KEY, "within": 0.01, "says": "x"}
NETS = ("resnet18", "vgg19", "senet18", "mobilenet")


def judged(a: list[list[float]], b: list[list[float]], **more: Any) -> pd.Series:
    """Returns the verdict on accuracies `[network][replicate]`."""
    found = Grid(
        [
            (name, {KEY: net}, row)
            for name, rows in (("a", a), ("b", b))
            for net, row in zip(NETS, rows, strict=False)
        ]
    )
    if lost := more.pop("lost", None):
        for run in found.manifest["runs"]:
            if (run["variant"], run["parameters"][KEY]) == lost:
                run["stop"] = "diverged"
    found.manifest["scenario"]["claims"] = [CLAIM | more]
    (row,) = [row for _, row in claims.evaluate(found).iterrows()]
    return row


def test_networks_are_the_sample_even_of_one_replicate() -> None:
    # Differences -0.013, -0.001, 0.002, 0.004: mean -0.002, deviation 0.007616.
    a = [[0.887], [0.899], [0.902], [0.904]]
    found = judged(a, [[0.9]] * 4)
    assert found["estimate"] == pytest.approx(-0.002)
    assert found["low"] == pytest.approx(-0.002 - 3.1824 * 0.0076158 / 2, abs=1e-5)
    assert found["replicates"] == 4
    assert found["verdict"] == "undecided"  # the interval reaches -0.0141
    assert judged(a, [[0.9]] * 4, within=0.015)["verdict"] == "holds"
    worse = [[x - 0.03] for (x,) in a]
    assert judged(worse, [[0.9]] * 4)["verdict"] == "does not hold"


def test_replicates_are_averaged_first() -> None:
    a = [[0.89, 0.91], [0.88, 0.92], [0.9, 0.902], [0.9, 0.904]]
    found = judged(a, [[0.9, 0.9]] * 4)
    assert found["estimate"] == pytest.approx((0 + 0 + 0.001 + 0.002) / 4)
    assert (found["replicates"], found["verdict"]) == (4, "holds")


def test_one_that_diverged_counts() -> None:
    found = judged([[0.9]] * 4, [[0.9]] * 4, lost=("b", "vgg19"))
    assert found["estimate"] == pytest.approx(0.9 / 4)
    assert "diverged, counted as 0" in found["why"]


def test_losses_are_better_if_smaller() -> None:
    found = judged([[0.9]] * 4, [[0.9]] * 4, metric="test_loss")
    assert found["verdict"] == "undecided"  # it was not evaluated
    assert judged([[0.9]] * 3, [[0.9]] * 4)["replicates"] == 3
    assert "has no runs at" in judged([[0.9]] * 4, [[0.9]] * 3)["why"]
