"""Losses that left their scale."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import legend
from stalesim.analysis.escapes import escapes, warnings
from stalesim.simulator.cli import printing
from stalesim.simulator.cli.console import Terminal
from tests.unit.analysis.studies import Curves, arrives


def study_of(last: list[float]) -> Curves:
    """Returns a study whose losses begin at 2 and end as given."""
    study = Curves({"a": [arrives(1), arrives(2), arrives(3)]})
    table = study.tables["evaluations"]
    ends = table["run"].map(dict(enumerate(last)))
    table["test_loss"] = np.where(table["time"] == 0, 2.0, ends)
    return study


def test_a_loss_that_ends_ten_times_as_high_has_left_its_scale() -> None:
    found = escapes(study_of([4e29, 19.0, 0.1]))
    assert found.to_dict() == {0: 2e29}
    assert escapes(study_of([20.1, 20.0, 1.0])).index.tolist() == [0]


def test_a_gradient_may_begin_small() -> None:
    study = study_of([1.9e6, 2.1e6, 0.1])
    table = study.tables["evaluations"]
    table["gradient_norm_squared"] = table.pop("test_loss")
    assert escapes(study).index.tolist() == [1]


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
    # A policy's loss lies about zero: one of them is no scale.
    about = np.float32([4e-9, -0.03, 0.05, 0.02, -0.04, 0.05])
    study.tables["commits"] = study.tables["commits"].assign(run=0, loss=about)
    assert escapes(study).empty


def test_what_ended_the_runs_is_said_if_it_differs() -> None:
    study = study_of([4e29, 3e8, 0.1])
    ended = "What ended the runs: "
    assert not any(note.startswith(ended) for note in legend.remarks(study))
    for run in study.manifest["runs"][:2]:
        run["stop"] = "diverged"
    assert f"{ended}diverged (2), time (1)." in legend.remarks(study)


def test_a_warning_names_the_worst_run_with_its_numbers() -> None:
    assert list(warnings(study_of([2.0, 19.0, 0.1]))) == []
    study = study_of([30.0, 62.0, 0.1])
    (said,) = warnings(study)
    assert said == (
        "a (replicate 1) left the scale of its loss: test_loss began at 2 and ended at "
        "62, 31 times as high, and 1 more of 3 runs; a smaller step size may keep it"
    )
    study.manifest["runs"][1] |= {"stop": "diverged", "diverged_at_commit": 40}
    table = study.tables["evaluations"]
    table.loc[table.index[-1], "test_loss"] = np.nan  # of replicate 2
    diverged, left = warnings(study)
    assert diverged == (
        "a (replicate 1) diverged at commit 40: its loss is no finite number, and 1 "
        "more of 3 runs; a smaller step size may keep it"
    )
    assert left.startswith("a (replicate 0) left the scale of its loss: test_loss ")


def test_a_run_says_at_its_end_what_left_its_scale(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study: Any = study_of([30.0, 1.0, 0.1])
    study.folder = "there"
    monkeypatch.setattr(printing, "err", Terminal(stderr=True))
    printing.close(study, ())
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("stalesim: warning: a (replicate 0) left the scale of its")


def test_a_share_that_did_not_rise_is_said() -> None:
    study = study_of([0.1, 0.1, 0.1])
    table = study.tables["evaluations"]
    for last, says in ((0.12, True), (0.6, False)):
        table["test_accuracy"] = np.where(table["time"] == 0, 0.1, last)
        (said,) = [line for line in warnings(study) if "learned" in line] or [""]
        assert (
            said.startswith("nothing was learned: test_accuracy began at 0.1 and en")
            is says
        )
    table["test_accuracy"] = np.nan
    assert not list(warnings(study))
