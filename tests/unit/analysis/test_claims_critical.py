"""Claims on the largest swept value that a variant stands."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import claims
from stalesim.analysis.claims.measured import Measured, measure
from stalesim.simulator.claims.base import read
from tests.unit.analysis.studies import Grid

KEY = "algorithm.step_size"
RATES = (0.1, 0.2, 0.4, 0.8)
CLAIM = {"critical": "a", "than": "b", "over": KEY, "within": 0.05, "says": "x"}


def study(a: Any, b: Any, *lost: tuple[str, float, int]) -> Grid:
    """Returns a study of accuracies `[replicate][rate]`; some runs diverged."""
    points = [
        (name, {KEY: rate}, [row[place] for row in rows])
        for name, rows in (("a", a), ("b", b))
        for place, rate in enumerate(RATES)
    ]
    found = Grid(points)
    for run in found.manifest["runs"]:
        if (run["variant"], run["parameters"][KEY], run["replicate"]) in lost:
            run["stop"] = "diverged"
    return found


def judged(of: Grid, **more: Any) -> pd.Series:
    of.manifest["scenario"]["claims"] = [CLAIM | more]
    (row,) = [row for _, row in claims.evaluate(of).iterrows()]
    return row


def standing(*places: int) -> list[list[float]]:
    """Returns accuracies of replicates, good up to a place of the rates each."""
    return [
        [0.9 - 0.01 * (i == 1) if i <= place else 0.3 for i in range(len(RATES))]
        for place in places
    ]


def test_a_factor_of_two_is_seen() -> None:
    found = judged(study(standing(2, 2, 1, 2, 2, 2), standing(1, 1, 1, 1, 1, 1)))
    assert found["estimate"] == pytest.approx(2)
    # Each lies between two swept values: four of six may also be alike.
    assert (found["low"], found["high"]) == pytest.approx((0.5, 4))
    assert found["verdict"] == "undecided"
    assert (
        "critical algorithm.step_size: a 0.2 to 0.8 and b 0.2 to 0.4"
        in (found["measured"])
    )
    apart = judged(study(standing(*[2] * 6), standing(*[0] * 6)))
    assert (apart["verdict"], apart["low"]) == ("holds", pytest.approx(2))
    against = judged(study(standing(*[0] * 6), standing(*[2] * 6)))
    assert against["verdict"] == "does not hold"


def test_replicates_that_all_agree_decide_only_if_there_are_six() -> None:
    for number, verdict in ((5, "not decidable"), (6, "holds")):
        found = judged(study(standing(*[2] * number), standing(*[0] * number)))
        assert found["verdict"] == verdict
        assert found["p"] == pytest.approx(2 * 0.5**number)


def test_alike_is_undecided() -> None:
    same = standing(1, 2, 1, 2, 1, 2)
    found = judged(study(same, same))
    assert (found["verdict"], found["estimate"]) == ("undecided", 1.0)


def test_by_at_least_is_the_border() -> None:
    rows = standing(*[2] * 8), standing(*[0] * 8)  # 4 times, known to a factor of 2
    assert judged(study(*rows), by_at_least=1.9)["verdict"] == "holds"
    assert judged(study(*rows), by_at_least=4)["verdict"] == "undecided"
    assert judged(study(*rows), by_at_least=8.1)["verdict"] == "does not hold"


def test_one_that_diverged_is_not_stood_whatever_it_ended_with() -> None:
    lost = [("a", 0.4, replicate) for replicate in range(6)]
    found = judged(study(standing(*[2] * 6), standing(*[1] * 6), *lost))
    assert (found["verdict"], found["estimate"]) == ("undecided", 1.0)


def test_beyond_the_sweep_is_a_bound() -> None:
    above = judged(study(standing(*[3] * 6), standing(*[1] * 6)))
    assert (above["verdict"], above["high"]) == ("holds", math.inf)
    assert "a >= 0.8" in above["measured"]
    never = judged(study(standing(*[1] * 6), standing(*[3] * 6)))
    assert (never["verdict"], never["low"]) == ("does not hold", 0.0)
    both = judged(study(standing(*[3] * 6), standing(*[3] * 6)))
    assert both["verdict"] == "undecided"
    assert "both sides have critical values beyond the sweep; widen it" in both["why"]


def test_a_variant_that_diverges_everywhere_is_below_the_sweep() -> None:
    lost = [("b", rate, replicate) for rate in RATES for replicate in range(6)]
    found = judged(study(standing(*[1] * 6), standing(*[1] * 6), *lost))
    assert (found["verdict"], found["high"]) == ("holds", math.inf)
    assert "6 replicates in which all swept values diverged" in found["why"]


def test_a_swept_value_that_is_fine_again_counts() -> None:
    rows = [[0.9, 0.3, 0.87, 0.3]] * 6
    found = judged(study(rows, standing(*[0] * 6)))
    assert found["estimate"] == pytest.approx(4)


def test_the_other_variant_must_be_swept() -> None:
    points = [("a", {KEY: rate}, [0.5] * 3) for rate in RATES] + [("b", {}, [0.5] * 3)]
    assert "is not swept for b" in judged(Grid(points))["why"]
    words = [("a", {KEY: word}, [0.5] * 3) for word in ("x", "y")]
    words += [("b", {KEY: word}, [0.5] * 3) for word in ("x", "y")]
    assert "is not swept over numbers above 0" in judged(Grid(words))["why"]


def test_losses_are_better_if_smaller() -> None:
    at = [
        ("a", {KEY: r}, [v] * 6)
        for r, v in zip(RATES, (0.5, 0.4, 0.44, 0.9), strict=True)
    ]
    at += [
        ("b", {KEY: r}, [v] * 6)
        for r, v in zip(RATES, (0.4, 0.44, 0.9, 0.9), strict=True)
    ]
    found = Grid(at)
    table = found.tables["evaluations"]
    found.tables["evaluations"] = table.rename(columns={"test_accuracy": "test_loss"})
    assert judged(found, metric="test_loss")["estimate"] == pytest.approx(2)


def test_wrong_decisions_are_as_rare_as_said() -> None:
    """Both variants stand the same: either decision is wrong.

    Of 1,000 claims at most 5 % are wrong, and four standard errors are 2.8 %.
    """
    rng = np.random.default_rng(20261122)
    wrong = 0
    claim = read(CLAIM)
    frames = Grid([(v, {KEY: r}, [0.5] * 8) for v in "ab" for r in RATES])
    frames.manifest["scenario"]["claims"] = [CLAIM]
    measured = measure(frames, [claim])
    for _ in range(1000):
        places = rng.choice(3, p=[0.2, 0.6, 0.2], size=(2, 8))
        values = np.array(
            [standing(*row) for row in places]
        )  # variant, replicate, rate
        numbers = measured.low.assign(
            **{"final test_accuracy": values.transpose(0, 2, 1).ravel()}
        )
        drawn = Measured(measured.table, numbers, numbers)
        row = claims.judge(drawn, [claim], claims.ReplicatePlan(8)).iloc[0]
        wrong += row["verdict"] != "undecided"
    assert wrong <= 78
