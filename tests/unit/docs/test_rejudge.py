"""Verdicts judged again from what is kept: numbers of runs, or intervals alone."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import claims
from analysis.claims.measured import Measured, measure
from simulator.claims import read
from tests.unit.analysis.studies import Curves, Decays, Grid, arrives

ROOT = Path(__file__).parents[3]


def _module() -> ModuleType:
    """Returns docs/rejudge.py, which is in no package, like what it imports."""
    sys.path.insert(0, str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("rejudge", ROOT / "docs/rejudge.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(ROOT / "docs"))
    return module


rejudge = _module()


def _again(study: Any, claim: dict[str, Any]) -> tuple[pd.Series, pd.Series]:
    """Returns what is said of a study, and what of its intervals."""
    study.manifest["scenario"]["claims"] = [{"says": "x"} | claim]
    claim = read({"says": "x"} | claim)
    whole = claims.evaluate(study).iloc[0]
    measured = measure(study, [claim])
    names = claims.findings.points(measured, claim)[0]
    said = rejudge.Said(claim, names, whole.to_dict())
    groups = Measured(measured.table, measured.numbers.iloc[:, :0], pd.DataFrame())
    sample = rejudge._sample(groups, claim, names, said)
    asked = study.manifest["scenario"]["replicates"]
    return whole, claims.judge(sample, [claim], claims.ReplicatePlan(asked)).iloc[0]


FINALS = Curves({"a": [[0.5], [0.53], [0.52], [0.5]], "b": [[0.4], [0.43], [0.4], [0]]})
TIMES = Curves({"a": [arrives(n) for n in (1, 2, 2)], "b": [arrives(9)] * 3})
LATE = Curves({"a": [arrives(n) for n in (1, 2, 2)], "b": [arrives(9)] * 2 + [[0.1]]})


@pytest.mark.parametrize(
    ("study", "claim"),
    [
        (FINALS, {"higher": "a", "than": "b"}),
        (FINALS, {"no_worse": "b", "than": "a", "within": 0.1}),
        (FINALS, {"close": "a", "than": "b", "within": 0.4}),
        (FINALS, {"value": "a", "is": 0.5, "within": 0.05}),
        (TIMES, {"faster": "a", "than": "b", "to": {"test_accuracy": 0.9}}),
    ],
)
def test_an_interval_is_as_good_as_its_numbers(study: Any, claim: Any) -> None:
    whole, again = _again(study, claim)
    for column in ("estimate", "low", "high", "p", "corrected"):
        assert again[column] == pytest.approx(whole[column], rel=1e-9)
    assert again["verdict"] == whole["verdict"]
    assert again["replicates"] == whole["replicates"]


@pytest.mark.parametrize("several", [False, True])
def test_slopes(several: bool) -> None:
    commits = np.arange(0, 1001, 50)
    slopes = (-1.0, -1.1, -0.8)
    groups = {
        name: [(commits * k, 5 * (1.0 + commits * k) ** b) for b in slopes]
        for name, k in (("a", 1), ("b", 4))
    }
    claim = {"slope": ["a", "b"] if several else "a", "metric": "optimality_gap"}
    whole, again = _again(Decays(groups), claim | {"is": -1, "within": 0.1})
    assert again["p"] == pytest.approx(whole["p"], rel=1e-9)
    assert again["estimate"] == pytest.approx(whole["estimate"])


def _sweep(claim: dict[str, Any], verdict: str) -> pd.Series:
    """Returns what is said of a sweep of which an interval alone was kept."""
    points = Grid([("a", {"x": x}, [0.1 * x, 0.1 * x + 0.01]) for x in (1, 2, 3)])
    claim = read({"says": "x", "over": "x"} | claim)
    measured = measure(points, [claim])
    names = claims.findings.points(measured, claim)[0]
    row = {"claim": "a: rises", "verdict": verdict, "measured": "0.1", "replicates": 5}
    row |= {"why": "", "estimate": 0.1, "low": 0.09, "high": 0.11}
    said = rejudge.Said(claim, names, row)
    sample = rejudge._sample(measured, claim, names, said)
    numbers = sample or rejudge._nothing(measured, names)
    (found,) = claims.findings.weighed(numbers, claim, 5)
    if sample is None:
        found = rejudge._unmeasured(found, said, rejudge.NOT_KEPT)
    return claims.findings.corrected(
        pd.DataFrame([found]), claims.ReplicatePlan(5)
    ).iloc[0]


def test_an_interval_of_a_slope_over_a_sweep_tells_that_it_rises() -> None:
    found = _sweep({"monotone": "a"}, claims.HOLDS)
    assert found["verdict"] == claims.HOLDS
    assert (found["low"], found["high"]) == pytest.approx((0.09, 0.11))


@pytest.mark.parametrize("claim", [{"monotone": "a"}, {"steady": "a", "within": 0.01}])
def test_what_steps_and_pairs_of_a_sweep_are_is_not_made_up(claim: Any) -> None:
    found = _sweep(claim, claims.FAILS)
    assert (found["verdict"], found["why"]) == (claims.OPEN, rejudge.NOT_KEPT)
    assert (found["claim"], found["measured"]) == ("a: rises", "0.1")
    found = _sweep(claim, claims.OPEN)
    assert found["verdict"] == claims.OPEN
    assert found["why"] == "undecided before any correction"
    assert np.isnan(found["p"])


def test_censored_times_stay_bounds() -> None:
    claim = {"faster": "a", "than": "b", "to": {"test_accuracy": 0.9}}
    whole, _ = _again(TIMES, claim)
    row = whole.to_dict() | {"measured": "times faster: 5; reached 3/3 and 2/3"}
    claim = read(claim | {"says": "x"})
    measured = measure(TIMES, [claim])
    said = rejudge.Said(claim, ("a", "b"), row)
    sample = rejudge._sample(measured, claim, ("a", "b"), said)
    found = claims.judge(sample, [claim], claims.ReplicatePlan(3)).iloc[0]
    assert found["low"] == pytest.approx(whole["low"])
    assert found["high"] == np.inf
    assert found["why"].startswith("ratio is a lower bound: b is censored")


def test_a_cell_of_the_closing_table() -> None:
    assert rejudge._finals("none (0/3)", 3).tolist() == [0, 0, 0]
    found = rejudge._finals("0.8945 ±0.04", 3)
    assert found.mean() == pytest.approx(0.8945)
    assert 4.302653 * found.std(ddof=1) / 3**0.5 == pytest.approx(0.04)
    found = rejudge._finals("0.2793 ±0.35 (2/3)", 3)
    assert found[:2].mean() == pytest.approx(0.2793)
    assert found[2] == 0
    assert rejudge._finals("0.5", 1) is None


def test_every_published_verdict_is_of_a_claim_that_is_made() -> None:
    for folder in sorted((ROOT / "docs" / "results").iterdir()):
        if not (folder / "claims.csv").exists():
            continue
        found = pd.read_csv(folder / "claims.csv", keep_default_na=False)
        assert list(found.columns) == list(claims.Finding._fields), folder.name
        path = ROOT / rejudge.experiments.file_of(folder.name)
        made = {claim.says for claim in rejudge.claims_of(rejudge.read(path))}
        assert {*found["says"]} == made, f"{folder.name}: run python docs/rejudge.py"
