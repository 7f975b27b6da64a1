"""Losses that left their scale."""

import numpy as np
import pandas as pd

from analysis import summary
from analysis.escapes import escapes
from tests.unit.analysis.studies import Curves, arrives


def study_of(last: list[float]) -> Curves:
    """Returns a study whose losses begin at 2 and end as given."""
    study = Curves({"a": [arrives(1), arrives(2), arrives(3)]})
    table = study.tables["evaluations"]
    ends = table["run"].map(dict(enumerate(last)))
    table["test_loss"] = np.where(table["time"] == 0, 2.0, ends)
    return study


def test_a_loss_that_ends_a_million_times_as_high_has_left_its_scale() -> None:
    found = escapes(study_of([4e29, 1.9e6, 0.1]))
    assert found.to_dict() == {0: 2e29}
    assert escapes(study_of([2.1e6, 2.0e6, 1.0])).index.tolist() == [0]


def test_where_no_loss_was_evaluated_that_of_the_batches_counts() -> None:
    study = Curves({"a": [arrives(1), arrives(2)]})
    assert escapes(study).empty
    study.tables["commits"] = pd.DataFrame(
        {
            "run": np.repeat([0, 1], 3).astype(np.int32),
            "commit": [1, 2, 3] * 2,
            "time": [1.0, 2.0, 3.0] * 2,
            "kind": "COMMIT",
            "round": np.int32(0),
            "num_contributions": np.int32(1),
            "client": np.int32(0),
            "staleness_mean": np.float32(0),
            "staleness_max": np.int32(0),
            "loss": [np.nan, 1.0, 3e7, 0.7, 1e9, 0.6],
        }
    )
    assert escapes(study).to_dict() == {0: 3e7}


def test_the_closing_table_says_so_and_diverged_runs_say_it_themselves() -> None:
    study = study_of([4e29, 3e8, 0.1])
    assert summary.summary(study)["stop"].tolist() == ["time,\nloss\n× 2e+29"]
    assert any(note.startswith("loss ×: ") for note in summary.notes(study))
    for run in study.manifest["runs"][:2]:
        run["stop"] = "diverged"
    assert summary.summary(study)["stop"].tolist() == ["diverged,\ntime"]
    calm = study_of([1.0, 1.0, 1.0])
    assert summary.summary(calm)["stop"].tolist() == ["time"]
    assert not any(note.startswith("loss ×: ") for note in summary.notes(calm))
