"""Claims on the mean over what is swept, such as networks."""

from typing import Any

import pandas as pd
import pytest

from stalesim.analysis import claims
from tests.unit.analysis.studies import Grid

KEY = "problem.model.name"
CLAIM = {"no_worse_mean": "a", "than": "b", "over": KEY, "within": 0.01, "says": "x"}
NETS = ("resnet18", "vgg19", "senet18", "mobilenet")


def judged(a: list[list[float]], b: list[list[float]], **more: Any) -> pd.Series:
    """Returns the verdict on accuracies `[network][replicate]`, of six replicates."""
    a, b = ([[*row] * (6 // len(row)) for row in side] for side in (a, b))
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


def test_the_mean_of_networks_is_one_number_of_each_replicate() -> None:
    # Means over networks: -0.005, -0.012 and 0.004.
    a = [
        [0.887, 0.87, 0.9],
        [0.899, 0.89, 0.91],
        [0.902, 0.9, 0.9],
        [0.892, 0.892, 0.906],
    ]
    found = judged(a, [[0.9]] * 4)
    assert found["estimate"] == pytest.approx(-0.005)
    assert (found["low"], found["high"]) == pytest.approx((-0.012, 0.004))
    assert found["replicates"] == 6
    assert found["verdict"] == "undecided"
    assert judged(a, [[0.9]] * 4, within=0.015)["verdict"] == "holds"
    worse = [[x - 0.03 for x in row] for row in a]
    assert judged(worse, [[0.9]] * 4)["verdict"] == "does not hold"


def test_one_that_diverged_counts() -> None:
    found = judged([[0.9]] * 4, [[0.9]] * 4, lost=("b", "vgg19"))
    assert (found["low"], found["high"]) == (pytest.approx(0.9 / 4), float("inf"))
    assert "vgg19 diverged, at most 0" in found["why"]


def test_losses_are_better_if_smaller() -> None:
    found = judged([[0.9]] * 4, [[0.9]] * 4, metric="test_loss")
    assert found["verdict"] == "undecided"  # it was not evaluated
    assert judged([[0.9]] * 3, [[0.9]] * 4)["replicates"] == 6
    assert "has no runs at" in judged([[0.9]] * 4, [[0.9]] * 3)["why"]
