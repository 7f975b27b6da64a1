"""Verdicts judged again from what is kept: numbers of runs, or verdicts alone."""

import json
from pathlib import Path

import pandas as pd
import pytest

import rejudge
from simulator.scenario.reading import loads

ROOT = Path(__file__).parents[3]
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


def test_a_verdict_without_numbers_follows_its_claim(tmp_path: Path) -> None:
    """Of words and origin; what was never judged is undecided, and says what to run."""
    old = pd.DataFrame(
        {
            "claim": [
                "x, step_size=0.1 higher than y, step_size=0.1 in test_accuracy",
                "x-2, step_size=0.1 higher than y, step_size=0.1 in test_accuracy",
                "x, step_size=0.1 higher than x-2, step_size=0.1 in test_accuracy",
            ],
            "says": ["figure 1", "figure 1", "dropped"],
            "origin": "paper",
            "verdict": ["holds", "does not hold", "holds"],
        }
    )
    old.to_csv(tmp_path / "claims.csv", index=False)
    path = ROOT / "scenarios" / "a.yaml"
    found = rejudge.kept(tmp_path, loads(SCENARIO, "a.yaml"), path)
    expected = [
        ("figure 1: new words", "paper", "does not hold"),
        ("control", "own", "holds"),
        ("new", "paper", "undecided"),
    ]
    columns = ["says", "origin", "verdict"]
    assert [*found[columns].itertuples(index=False, name=None)] == expected
    assert found["why"][2] == f"{rejudge.NOT_KEPT}: stalesim run scenarios/a.yaml"


RESULTS = sorted(path.parent for path in rejudge.RESULTS.glob("*/claims.csv"))


@pytest.mark.parametrize("folder", RESULTS, ids=lambda folder: folder.name)
def test_every_published_verdict_is_of_its_scenario(folder: Path) -> None:
    """It has the claims of the file, its replicates, or those of a planned look."""
    found = pd.read_csv(folder / "claims.csv")
    scenario = rejudge.read(ROOT / rejudge.experiments.file_of(folder.name))
    made = {(claim.says, claim.origin) for claim in rejudge.claims_of(scenario)}
    judged = {*zip(found["says"], found["origin"], strict=True)}
    assert judged == made, "run python docs/rejudge.py"
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    allowed = about.get("looks", [scenario.replicates])
    assert about["replicates"] in allowed, "run the study as its file says"
