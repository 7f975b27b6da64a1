"""Claims that the mean of a metric over a run obeys a bound."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import claims
from stalesim.analysis.claims.measured import measure, read_csv
from tests.unit.analysis.studies import Decays

MEANS = (0.9, 1.0, 1.1, 1.0) * 2
METRIC = "optimality_gap"


def _study(means: tuple[float, ...] = MEANS) -> Any:
    """Returns runs that fall in two lines, whose mean over 100 commits is known."""
    # From 3 m to m in the first quarter and to 0 at the end: (4 / 2 + 1 / 2 * 3) / 4.
    curves = [
        ([0, 25, 100], np.array([3.0, 1.0, 0.0]) * mean / 0.875) for mean in means
    ]
    return Decays({"a": curves})


def _judge(study: Any, **claim: Any) -> pd.Series:
    said = {"below": "a", "metric": METRIC, "says": "theorem 2"} | claim
    study.manifest["scenario"]["claims"] = [said]
    return claims.evaluate(study).iloc[0]


@pytest.mark.parametrize(
    ("bound", "verdict"),
    [(2.0, "holds"), (1.2, "holds"), (1.0, "undecided"), (0.8, "does not hold")],
)
def test_the_mean_over_a_run_against_its_bound(bound: float, verdict: str) -> None:
    found = _judge(_study(), bound=bound)
    assert found["verdict"] == verdict
    assert found["estimate"] == pytest.approx(1)
    assert (found["low"], found["high"]) == pytest.approx((0.9, 1.1))  # the range
    assert found["claim"] == f"a: mean {METRIC} at most {bound:g}"
    assert found["why"].startswith(f"mean over the run against {bound:g}; p")


def test_a_mean_on_the_bound_obeys_it() -> None:
    assert _judge(_study((1.0,) * 6), bound=1.0)["verdict"] == "holds"


def test_who_diverged_does_not_obey() -> None:
    study = _study()
    for replicate in (1, 2):
        study.manifest["runs"][replicate]["stop"] = "diverged"
    found = _judge(study, bound=100.0)
    assert found["verdict"] == "undecided"  # six of eight are not enough
    assert found["high"] == np.inf
    assert "2 of a diverged" in found["why"]


def test_what_was_kept_is_judged_alike(tmp_path: Any) -> None:
    study = _study()
    before = _judge(study, bound=1.2)
    measured = measure(study, study.manifest["scenario"]["claims"])
    measured.to_csv(tmp_path / "values.csv")
    again = claims.judge(
        read_csv(tmp_path / "values.csv"),
        study.manifest["scenario"]["claims"],
        claims.ReplicatePlan(8),
    ).iloc[0]
    assert again["estimate"] == before["estimate"]
    assert again["verdict"] == before["verdict"]
