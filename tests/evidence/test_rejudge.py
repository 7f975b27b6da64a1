"""Verdicts judged again from what is kept: numbers of runs, or verdicts alone."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evidence import power, rejudge
from stalesim.analysis.bounds import Sample, exact
from stalesim.analysis.statistics import t_interval
from stalesim.simulator.scenario.reading import loads

ROOT = Path(__file__).parents[2]
SCENARIO = """
name: a
source: a paper
replicates: 3
problem: {data: {kind: digits}, partition: {kind: iid, clients: 2}}
clients: {compute: {law: constant, value: 1}}
protocol: {kind: asynchronous}
algorithm: {kind: sgd, step_size: 0.1, batch: 1}
stop: {commits: 2}
evaluate: {every: {commits: 1}, metrics: [test_accuracy]}
sweep: {algorithm.step_size: [0.1, 0.2]}
variants: {x: {}, x-2: {}, y: {}}
claims:
  - {higher: x-2, than: y, at: {algorithm.step_size: 0.1}, says: "figure 1: new words"}
  - {higher: x, than: y, at: {algorithm.step_size: 0.1}, origin: own, says: "control"}
  - {no_worse: x, than: y, within: 0.1, at: {algorithm.step_size: 0.2}, says: "new"}
"""

AT = "learning_rate=0.1"


def test_an_interval_is_judged_by_what_it_tells(tmp_path: Path) -> None:
    """Mean and spread bound how many lie beyond a border, whatever the law."""
    old = pd.DataFrame(
        {
            "claim": [
                f"x, {AT} higher than y, {AT} in test_accuracy",
                f"x-2, {AT} higher than y, {AT} in test_accuracy",
                f"x, {AT} higher than x-2, {AT} in test_accuracy",
            ],
            "measured": "m",
            "estimate": [-0.5, 0.1, 0.1],
            "low": [-0.51, 0.0, 0.0],
            "high": [-0.49, 0.2, 0.2],
            "replicates": 20,
        }
    )
    old.to_csv(tmp_path / "intervals.csv", index=False)
    (tmp_path / "about.json").write_text('{"replicates": 20}')
    path = ROOT / "scenarios" / "a.yaml"
    found = rejudge.kept(tmp_path, loads(SCENARIO, "a.yaml"), path)
    expected = [
        # A mean half a spread from the border: as few as five may lie beyond it.
        ("figure 1: new words", "paper", "undecided"),
        # Twenty spreads: none lies on the other side.
        ("control", "own", "does not hold"),
        ("new", "paper", "undecided"),
    ]
    columns = ["says", "origin", "verdict"]
    assert [*found[columns].itertuples(index=False, name=None)] == expected
    assert found["why"][2] == f"{rejudge.NOT_KEPT}: stalesim run scenarios/a.yaml"


def test_order_statistics_lie_within_what_mean_and_spread_allow() -> None:
    """And some sample attains each bound: k numbers alike, and the others."""
    scenario = loads(SCENARIO, "a.yaml")
    claim, groups = next(rejudge.of_points(scenario))
    rng = np.random.default_rng(0)
    for law in (
        rng.normal,
        rng.exponential,
        lambda size: (rng.random(size) < 0.2) * 1.0,
    ):
        values = law(size=8)
        mean, low, high = t_interval(values)
        row = {"replicates": 8, "estimate": mean, "low": low, "high": high}
        ends = rejudge._like(groups, claim, row).of("final test_accuracy", f"x-2, {AT}")
        assert (ends.low <= np.sort(values) + 1e-9).all()
        assert (np.sort(values) <= ends.high + 1e-9).all()
    edge = np.array([0.0] * 3 + [1.0] * 5)
    mean, low, high = t_interval(edge)
    row = {"replicates": 8, "estimate": mean, "low": low, "high": high}
    ends = rejudge._like(groups, claim, row).of("final test_accuracy", f"x-2, {AT}")
    assert ends.low[2] == pytest.approx(0)
    assert ends.high[3] == pytest.approx(1)


RESULTS = sorted(path.parent for path in rejudge.RESULTS.glob("*/claims.csv"))


@pytest.mark.parametrize("folder", RESULTS, ids=lambda folder: folder.name)
def test_every_published_verdict_is_of_its_scenario(folder: Path) -> None:
    """It has the claims of the file, its replicates, or those of a planned look."""
    found = pd.read_csv(folder / "claims.csv")
    scenario = rejudge.read(ROOT / rejudge.experiments.file_of(folder.name))
    made = {(claim.says, claim.origin) for claim in rejudge.claims_of(scenario)}
    judged = {*zip(found["says"], found["origin"], strict=True)}
    assert judged == made, "run python -m evidence.rejudge"
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    allowed = about.get("looks", [scenario.replicates])
    assert about["replicates"] in allowed, "run the study as its file says"
    table = pd.read_csv(folder / "summary.csv")
    ended = table.loc[table["stop"] == "commits", "commits (MB)"]
    commits = {float(text.split(" ")[0]) for text in ended}
    assert commits <= _horizons(scenario), "run the study as its file says"


def _horizons(scenario: Any) -> set[float]:
    """Returns the numbers of commits after which a scenario's runs stop."""
    entries = [scenario.model_dump(mode="json"), *scenario.variants.values()]
    found = {entry.get("stop", {}).get("commits") for entry in entries}
    for entry in entries:
        found |= {*(entry.get("sweep") or {}).get("stop.commits", [])}
    return found - {None}


def test_what_is_undecided_says_how_many_replicates_it_needs() -> None:
    """Run `python -m evidence.power` where it does not."""
    undecided = set()
    for folder in rejudge.RESULTS.iterdir():
        if not {"values.csv", "claims.csv"} <= {path.name for path in folder.iterdir()}:
            continue
        found = pd.read_csv(folder / "claims.csv", keep_default_na=False)
        known = found["verdict"].isin(power.UNDECIDED) & (found["replicates"] > 0)
        keys = found[known].assign(study=folder.name)[power.KEY]
        undecided |= {*keys.itertuples(index=False, name=None)}
    assert {*power.needed()} == undecided


def test_the_chance_of_another_replicate_is_that_of_student() -> None:
    """Numbers 1, 2 and 3 above 0: t = 2 / sqrt(4 / 3), of 2 degrees of freedom."""
    values = np.array([1.0, 2.0, 3.0])
    t = 2 / np.sqrt(4 / 3)
    expected = 0.5 + t / (2 * np.sqrt(2 + t**2))
    assert power.share(exact(values), 0.0) == pytest.approx(expected)
    # Of numbers that are not all known, by Laplace: two of three lie above for certain.
    some = Sample(np.array([1.0, 2.0, -np.inf]), np.array([1.0, 2.0, 5.0]))
    assert power.share(some, 0.0) == 3 / 5
