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
from tests.unit.analysis.studies import Curves, Decays, arrives

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
    claim = {"says": "x", "metric": "test_accuracy"} | claim
    study.manifest["scenario"]["claims"] = [claim]
    whole = claims.evaluate(study).iloc[0]
    measured = measure(study, [claim])
    names = claims.findings.points(measured, claim)[0]
    said = rejudge.Said(claim, names, whole.to_dict())
    groups = Measured(measured.table, measured.numbers.iloc[:, :0], pd.DataFrame())
    sample = rejudge._sample(groups, claim, names, said)
    asked = study.manifest["scenario"]["replicates"]
    return whole, claims.judge(sample, [claim], claims.Plan(asked)).iloc[0]


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


def test_censored_times_stay_bounds() -> None:
    claim = {"faster": "a", "than": "b", "to": {"test_accuracy": 0.9}}
    whole, _ = _again(TIMES, claim)
    row = whole.to_dict() | {"measured": "times faster: 5; reached 3/3 and 2/3"}
    claim |= {"says": "x", "metric": "test_accuracy"}
    measured = measure(TIMES, [claim])
    said = rejudge.Said(claim, ("a", "b"), row)
    sample = rejudge._sample(measured, claim, ("a", "b"), said)
    found = claims.judge(sample, [claim], claims.Plan(3)).iloc[0]
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
        made = {claim["says"] for claim in rejudge.dumped(rejudge.read(path))}
        assert {*found["says"]} == made, f"{folder.name}: run python docs/rejudge.py"
