"""What is kept of a study judges it again, to the last digit, without its runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import claims
from stalesim.analysis.claims import findings
from stalesim.analysis.claims.measured import measure, read_csv
from stalesim.simulator.files.study import StudyError
from stalesim.simulator.scenario.reading import loads
from tests.unit.analysis.studies import Curves, Grid, arrives

TO = {"test_accuracy": 0.9}
CLAIMS: list[dict[str, Any]] = [
    {"faster": "a", "than": "b", "to": TO},
    {"fewer": "a", "than": "b"},
    {"higher": "a", "than": "b", "metric": "test_accuracy"},
    {"no_worse": "a", "than": "b", "metric": "test_loss", "within": 0.1},
    {"close": "b", "than": "a", "metric": "test_accuracy", "within": 0.1},
    {"ratio": "a", "than": "b", "of": "commits", "is": 1, "within": 0.1},
    {"value": "a", "metric": "test_accuracy", "is": 0.9, "within": 0.1},
    {"slope": "a", "metric": "test_loss", "is": -1, "within": 0.1},
    {"slope": ["a", "b"], "metric": "test_loss", "is": -1, "within": 0.1},
    {"below": "a", "metric": "test_loss", "bound": 0.5},
    {"higher": "a", "than": "b", "metric": "objective"},
]


def _study() -> Curves:
    study = Curves(
        {"a": [arrives(n) for n in (1, 2, 99, 2) * 2], "b": [arrives(5, 21)] * 8},
        {("b", 1): "diverged"},
    )
    table = study.tables["evaluations"]
    falls = (1 + table["commits"]) ** (-1.0 - table["run"] / 7)
    study.tables["evaluations"] = table.assign(test_loss=falls)
    study.manifest["scenario"]["claims"] = [claim | {"says": "x"} for claim in CLAIMS]
    return study


def test_what_is_kept_is_judged_alike(tmp_path: Path) -> None:
    study = _study()
    scenario = study.manifest["scenario"]
    whole = claims.evaluate(study)
    assert whole["measured"].astype(bool).sum() == 10
    measure(study, scenario["claims"]).to_csv(tmp_path / "values.csv")
    kept = read_csv(tmp_path / "values.csv")
    again = claims.judge(kept, scenario["claims"], scenario["replicates"])
    pd.testing.assert_frame_equal(whole.iloc[:-1], again.iloc[:-1])
    # What was not measured is not invented.
    why = again.iloc[-1]["why"]
    assert "no 'final objective'; run the study again; " in why


def test_bounds_are_kept_as_such(tmp_path: Path) -> None:
    study = _study()
    measure(study, study.manifest["scenario"]["claims"]).to_csv(tmp_path / "v.csv")
    text = (tmp_path / "v.csv").read_text()
    assert text.splitlines()[0].startswith("variant,group,parameters,replicate,stop,")
    assert ">=10.0" in text  # the third replicate of a had not arrived by then
    found = read_csv(tmp_path / "v.csv").of("time to test_accuracy 0.9", "a")
    assert found.low.tolist() == [0, 1, 10, 1] * 2
    assert found.high.tolist() == [1, 2, np.inf, 2] * 2
    assert "1.0..2.0" in text
    assert read_csv(tmp_path / "v.csv").of("final test_accuracy", "b").low[1] == -np.inf


def test_final_values_that_no_claim_needs_are_kept_if_asked_for() -> None:
    measured = measure(_study(), [], ["test_loss"])
    assert measured.low.columns.tolist() == ["final test_loss"]
    with pytest.raises(StudyError, match="no 'final test_auc'; run the study again"):
        measured.of("final test_auc", "a")


def test_the_first_replicates_alone() -> None:
    study = Grid([("a", {"x": 1}, [0.1, 0.2, 0.3, 0.4]), ("b", {}, [0.5] * 4)])
    claim = {"higher": "b", "than": "a", "metric": "test_accuracy", "says": "x"}
    measured = measure(study, [claim])
    assert measured.replicates == 4
    first = measured.first(3)
    found = claims.judge(first, [claim], 3)
    assert found["estimate"].tolist() == [pytest.approx(0.3)]
    assert found["replicates"].tolist() == [3]


def test_points_of_a_sweep_that_a_claim_names() -> None:
    finals = np.array([0.5, 0.51, 0.52])
    study = Grid(
        [("a", {"x": x, "y": y}, finals + x + y) for x in (1, 2, 3) for y in (1, 2)]
        + [("b", {}, finals)]
    )

    def found(**claim: Any) -> list[str]:
        study.manifest["scenario"]["claims"] = [
            {"metric": "test_accuracy", "says": "x"} | claim
        ]
        return claims.evaluate(study)["claim"].tolist()

    assert len(found(higher="a", than="b")) == 6
    assert found(higher="a", than="b", at={"x": [1, 3], "y": [2]}) == [
        "a, x=1, y=2 higher than b in test_accuracy",
        "a, x=3, y=2 higher than b in test_accuracy",
    ]
    assert found(higher="b", than="a", at={"x": [2], "y": [1]}) == [
        "b higher than a, x=2, y=1 in test_accuracy"
    ]
    # Along x there are several points, unless y is held.
    assert found(monotone="a", over="x") == ["a"]
    rising = found(monotone="a", over="x", at={"y": [1]})
    assert rising == ["a: test_accuracy rises with x"]
    study.manifest["scenario"]["claims"] = [
        {"steady": "a", "over": "x", "within": 1.5, "metric": "test_accuracy"}
        | {"at": {"x": [1, 2], "y": [1]}, "says": "x"}
    ]
    (largest,) = claims.evaluate(study)["estimate"]
    assert largest == pytest.approx(1)  # of x = 1 and 2; of 1 and 3 it is 2


def test_families_are_the_claims_of_one_origin() -> None:
    study = Curves({"a": [[0.5], [0.51], [0.52]] * 2, "b": [[0.4], [0.4], [0.47]] * 2})
    claim = {"higher": "a", "than": "b", "metric": "test_accuracy", "says": "x"}
    study.manifest["scenario"]["claims"] = [
        claim,
        claim | {"higher": "b", "than": "a"},
        claim | {"origin": "own"},
    ]
    found = claims.evaluate(study)
    assert found["origin"].tolist() == ["paper", "paper", "own"]
    p = found["p"].iloc[0]
    assert found["p"].tolist() == [p] * 3
    assert found["corrected"].tolist() == pytest.approx([2 * p, 2 * p, p])
    assert p < 0.05 < 2 * p
    assert found["verdict"].tolist() == ["not decidable"] * 2 + ["holds"]
    words = "6 replicates cannot decide a family of 2 claims, which needs 7"
    assert found["why"].iloc[0].endswith(f"; {words}")
    assert f"; by Holm among 2 = {2 * p:.2g}" in found["why"].iloc[0]
    assert "Holm" not in found["why"].iloc[2]


def test_a_study_with_looks_is_judged_by_their_levels() -> None:
    finals = [0.52] * 12 + [0.48, 0.49]  # 12 of 14; all of the first 10
    study = Curves({"a": [[x] for x in finals], "b": [[0.5]] * 14})
    claim = {"higher": "a", "than": "b", "metric": "test_accuracy", "says": "x"}
    scenario = study.manifest["scenario"]
    scenario["claims"] = [claim]
    once = claims.evaluate(study).iloc[0]
    assert once["verdict"] == "holds"
    scenario["looks"] = [10, 14, 40]
    found = claims.evaluate(study).iloc[0]
    assert found["p"] == once["p"]
    assert found["verdict"] == "undecided"
    assert "; interim analysis 2 at 14 of at most 40 = 0." in found["why"]
    assert not claims.all_decided(study)
    # A study beyond its plan, or between two looks, is judged by the look before.
    scenario["looks"] = [5, 10]
    found = claims.evaluate(study).iloc[0]
    assert found["replicates"] == 10
    said = "interim analysis 2 at 10 of at most 10 (without 4 that were not planned)"
    assert said in found["why"]
    scenario["looks"] = [20, 40]
    assert claims.evaluate(study)["verdict"].tolist() == ["not decidable"]


SCENARIO = """
name: a
replicates: 5
problem: {data: {kind: digits}, partition: {kind: iid, clients: 2}}
clients: {compute: {law: constant, value: 1}}
protocol: {kind: asynchronous}
algorithm: {kind: sgd, step_size: 0.1, batch: 1}
stop: {commits: 2}
evaluate: {every: {commits: 1}, metrics: [test_accuracy]}
sweep: {algorithm.step_size: [0.1, 0.2, 0.4]}
variants: {x: {}, y: {}}
claims:
  - {higher: x, than: y, says: "at three points"}
  - {monotone: x, over: algorithm.step_size, origin: identity, says: "along the sweep"}
"""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "5 replicates cannot decide a family of 3 claims, which needs 7"),
        ({"replicates": 7}, ""),
        (
            {"looks": (5, 6)},
            "no interim analysis at 5, 6 replicates can decide a family of 3 claims",
        ),
        ({"looks": (10, 14, 20)}, ""),
    ],
)
def test_what_cannot_be_decided_is_said_before_the_runs(
    more: dict[str, Any], said: str
) -> None:
    scenario = loads(SCENARIO, "a.yaml").model_copy(update=more)
    assert "".join(claims.undecidable(scenario)) == said


@pytest.mark.parametrize(
    ("measured", "number"),
    [
        ("times faster: 0.8 [at most 2]; reached 9/9", "0.8 times as fast [at most 2]"),
        ("times faster: at least 1.429; reached 1/1", "at least 1.429 times as fast"),
        ("times less energy: 2 [1, 3]", "2 times as much energy for the other [1, 3]"),
        (
            "times fewer bytes: no bound (range, 75 %)",
            "times as many bytes for the other: no bound (range, 75 %)",
        ),
        ("difference of test_loss: 0.02 [0.01, 0.03]", "difference: 0.02 [0.01, 0.03]"),
        (
            "smallest fall, 0.1 to 0.2: -1 [-2, 0]",
            "smallest fall: -1 [-2, 0]",
        ),
        ("test_loss: 0.2 [0.1, 0.3]", "test_loss: 0.2 [0.1, 0.3]"),
        ("", ""),
    ],
)
def test_a_verdict_in_a_line_says_what_its_number_is(
    measured: str, number: str
) -> None:
    assert findings.number(measured) == number
