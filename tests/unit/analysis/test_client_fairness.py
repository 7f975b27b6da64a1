"""Tables and the figure of clients' accuracies, from numbers that are known."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import fairness, figures
from stalesim.analysis.figures import report
from stalesim.simulator.files.study import StudyError
from tests.unit.analysis.studies import Study, manifest_of, run_of

METRICS = ["test_accuracy", "client_accuracy"]


class Served(Study):
    """Two groups of runs with two replicates; 20 clients, of which 5 are slow."""

    def __init__(self) -> None:
        self.manifest = manifest_of(evaluate={"metrics": METRICS})
        workers, clients = [], []
        for run, (group, replicate) in enumerate(
            [("sync", 0), ("sync", 1), ("async", 0), ("async", 1)]
        ):
            self.manifest["runs"].append(run_of(run, group, replicate))
            everyone = np.arange(1, 21)
            slow = everyone > 15
            value = 0.9 - (0.4 if group == "async" else 0.1) * slow
            for time, share in ((0.0, 0.0), (50.0, 0.5), (100.0, 1.0)):
                columns: dict[str, Any] = {"run": np.int32(run), "time": time}
                columns |= {"commits": int(time), "client": everyone}
                columns["client_accuracy"] = share * value + 0.001 * replicate
                workers.append(pd.DataFrame(columns).astype({"client": np.int32}))
            columns = {"run": np.int32(run), "client": everyone}
            columns |= {"client_group": np.where(slow, "slow", "fast")}
            columns |= {"num_samples": 10 * everyone}
            clients.append(pd.DataFrame(columns))
        self.tables = {"workers": pd.concat(workers), "clients": pd.concat(clients)}


def test_a_client_ends_where_its_last_evaluations_are() -> None:
    study = Served()
    table = fairness.by_client(study)
    assert len(table) == 4 * 20
    row = table.loc[(table["group"] == "async") & (table["client"] == 16)].iloc[1]
    assert row["value"] == pytest.approx(0.501)
    assert (row["replicate"], row["num_samples"], row["client_group"]) == (
        *(1, 160),
        "slow",
    )


def test_clients_and_their_groups_are_measured() -> None:
    study = Served()
    table = fairness.spread(study)
    assert [*table["clients"]] == ["all", "fast", "slow"] * 4
    whole = table.loc[(table["group"] == "async") & (table["replicate"] == 0)]
    whole = whole.set_index("clients")
    assert [*whole["count"]] == [20, 15, 5]
    np.testing.assert_allclose(whole["mean"], [0.8, 0.9, 0.5])
    np.testing.assert_allclose(whole["std"], [np.sqrt(0.03), 0, 0], atol=1e-12)
    np.testing.assert_allclose(whole["worst_decile"], [0.5, 0.9, 0.5])
    np.testing.assert_allclose(whole["min"], [0.5, 0.9, 0.5])


def test_the_figure_has_a_step_for_each_client() -> None:
    study = Served()
    figure = figures.client_accuracies(study)
    (axes,) = figure.axes
    steps = [line for line in axes.get_lines() if np.size(line.get_xdata()) > 1]
    assert len(steps) == 2
    for line in steps:
        at, share = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        assert at.size == 41, "clients of both replicates, and where they begin"
        assert (np.diff(share) > 0).all()
        assert share[-1] == 1
    # 5 of 20 clients of async are below 0.6, none of sync's.
    below = [np.asarray(s.get_ydata())[np.asarray(s.get_xdata()) < 0.6] for s in steps]
    assert below[0].size == 0
    assert below[1].max() == pytest.approx(0.25)
    said = f"{report.caption('fairness')}; {figure.get_label()}"
    assert said.count("worst") == 1


def test_a_study_without_the_metric_says_so() -> None:
    study = Served()
    study.tables["workers"] = study.tables["workers"].drop(columns="client_accuracy")
    with pytest.raises(StudyError, match="add it to"):
        fairness.by_client(study)
