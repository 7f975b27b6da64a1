"""Units and directions of metrics, the user's own among them, wherever they count."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import legend, targets
from stalesim.analysis.figures import style
from stalesim.analysis.page import method
from stalesim.simulator.files.study import StudyError, metric_of_study
from stalesim.simulator.files.study.measured import facts_of
from stalesim.simulator.parts.metrics import OF_LOSS, Metric
from stalesim.simulator.problem.metrics.of_model import TEST_LOSS
from stalesim.simulator.scenario.scenario import Problem
from tests.unit.analysis.studies import (
    Study,
    client_of,
    empty,
    evaluations_of,
    judged,
    manifest_of,
    run_of,
)

FITS = {
    "unit": "dB",
    "higher_is_better": True,
    "label": "Fit",
    "logarithmic": False,
    "meaning": "of the test rows",
    "bounds": None,
}
LOSSES = [{"loss": "mine:huber", "loss_unit": "mm"}] * 4


class Fitted(Study):
    """Two groups whose metric is the user's own; the last run of `b` diverged."""

    def __init__(self, higher: bool, values: Any, problems: Any = LOSSES) -> None:
        self.manifest = manifest_of(
            evaluate={"metrics": ["fit", "test_loss"], "every": {"commits": 10}}
        )
        self.manifest["metrics"] = {"fit": FITS | {"higher_is_better": higher}}
        places = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
        self.manifest["runs"] = [
            run_of(
                run, label, replicate, scenario={"problem": problems[run]},
                seed=replicate, stop="diverged" if run == 3 else "commits",
            )
            for run, (label, replicate) in enumerate(places)
        ]  # fmt: skip
        times = np.arange(3.0)
        rows = [
            evaluations_of(run, times, fit=np.array(of), test_loss=np.ones(3))
            for run, of in enumerate(values)
        ]
        table = [client_of(run, 1, np.ones(3, int)) for run in range(4)]
        self.tables = {
            "evaluations": pd.concat(rows, ignore_index=True),
            "clients": pd.concat(table, ignore_index=True),
        }

    def table(self, name: str) -> pd.DataFrame:
        return self.tables.get(name, empty(name))


VALUES = [[1, 2, 3], [1, 2, 4], [-2, 1, 2], [1, 0, 0.5]]


@pytest.mark.parametrize(
    ("higher", "worst", "bound"),
    [(True, -2.0, "low"), (False, 4.0, "high")],
)
def test_a_run_that_diverged_is_as_bad_as_the_worst_that_was_seen(
    higher: bool, worst: float, bound: int
) -> None:
    study: Any = Fitted(higher, VALUES)
    found = targets.final_bounds(study, "fit")
    assert found["value"].tolist() == [3, 4, 2, worst]
    assert np.isinf(found[bound]).tolist() == [False] * 3 + [True]


@pytest.mark.parametrize("higher", [True, False])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_best_group_reaches_the_target_by_default(higher: bool, sign: int) -> None:
    study: Any = Fitted(higher, [[sign * v for v in row] for row in VALUES])
    target = targets.default_target(study)
    best = sign * 3.5 if higher == (sign > 0) else sign * 2
    assert target.value == pytest.approx(best, rel=0.06)
    assert (target.value < best) == higher
    times = targets.time_to_target(study, "fit", target.value).set_index("group")
    first = "a" if higher == (sign > 0) else "b"
    reached = dict(zip(times.index, times["reached"].tolist(), strict=True))
    assert reached[first] > 0


def test_what_a_study_says_of_metrics_is_read_without_the_plug_in() -> None:
    study: Any = Fitted(True, VALUES)
    assert style.metric_label("fit", study) == "Fit (dB)"
    assert style.metric_label("test_loss", study) == "Test loss (mm)"
    words = legend.legend(study)["Final"]
    assert "mean of the last tenth of evaluations (dB, higher is better)," in words
    rows = dict(method._outputs(study.manifest)[1])
    assert rows["fit"] == "of the test rows (dB; higher is better)"
    assert rows["test_loss"] == "mean over the test rows (mm; lower is better)"
    del study.manifest["metrics"]
    with pytest.raises(StudyError, match="register the module"):
        targets.default_target(study)


def test_losses_of_different_units_have_no_unit_together() -> None:
    mixed = [*LOSSES[:3], {"loss": "softmax"}]
    study: Any = Fitted(True, VALUES, mixed)
    assert style.metric_label("test_loss", study) == "Test loss"


def test_a_manifest_keeps_what_a_metric_is() -> None:
    kept = facts_of(["test_loss", "test_accuracy"], [{"loss": "squared"}])
    assert kept["test_loss"]["unit"] == ""
    assert kept["test_accuracy"]["bounds"] == [0.0, 1.0]
    facts = kept["test_accuracy"] | {"bounds": [None, 1.0]}
    manifest = {"runs": [], "metrics": {"r_squared": facts}}
    read = metric_of_study(manifest, "r_squared")
    assert read is not None
    assert read.bounds == (-np.inf, 1.0)
    assert read.worst is None
    assert read.higher_is_better


def test_claims_are_judged_by_what_the_study_tells_of_its_metric() -> None:
    """`a` ends 1 above `b`; no plug-in that has the metric is registered here."""
    ends = [5.0, 5.0, 4.0, 4.0]
    values = [[0.0, 0.0, end] for end in ends]
    no_worse = {"no_worse": "a", "than": "b", "within": 0.5}
    for higher, sign in ((True, "-"), (False, "")):
        study: Any = Fitted(higher, values)
        study.manifest["runs"][3]["stop"] = "commits"
        found = judged(study, metric="fit", **no_worse)
        assert f"difference against {sign}0.5" in found["why"]
        assert found["estimate"] == 1.0
        assert found["verdict"] == "not decidable"  # of two pairs
    below = {"below": "a", "bound": 6.0}
    assert judged(Fitted(False, values), metric="fit", **below)["estimate"] > 0
    with pytest.raises(StudyError, match="small at best, got 'fit'"):
        judged(Fitted(True, values), metric="fit", **below)
    with pytest.raises(StudyError, match="register its module"):
        judged(Fitted(True, values), metric="fits", **no_worse)


def test_titles() -> None:
    assert TEST_LOSS.title == "Test loss"
    assert TEST_LOSS.of_problems([{"loss": "binary"}]).title == "Test loss (nats)"
    assert Metric("mean_error", "m:f", unit="mm").title == "Mean error (mm)"
    assert Metric("error", "m:f", unit="mm", label="Error (mm)").title == "Error (mm)"
    assert Metric("hits", "m:f", unit="fraction").title == "Hits"
    assert Metric("huber", "m:f", unit=OF_LOSS).title == "Huber"


def test_a_likelihood_has_its_unit_already() -> None:
    problem = {
        "data": {"kind": "digits"},
        "partition": {"kind": "iid", "clients": 2},
        "loss_unit": "bits",
    }
    with pytest.raises(ValueError, match="is in nats, got 'bits'"):
        Problem.model_validate(problem)
    own = Problem.model_validate({**problem, "loss": "squared"})
    assert own.model_dump(mode="json")["loss_unit"] == "bits"
