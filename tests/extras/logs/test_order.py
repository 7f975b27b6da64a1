"""Logs that have the order of commits and no times."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import doubts
from stalesim.analysis.timelines import report
from stalesim.simulator import studies
from stalesim.simulator.extras.logs.reading import columns_of, read_log
from stalesim.simulator.extras.logs.timelines import import_log
from stalesim.simulator.extras.logs.worlds import world_of
from stalesim.simulator.files.study import StudyWarning
from stalesim.simulator.parts.errors import DataError
from tests.support import SGD, scenario

FIRST = 6
"""Number of the first commit: logs begin to count anywhere."""


def drawn(num_clients: int, num_jobs: int, size: int, seed: int) -> pd.DataFrame:
    """Returns a log by a loop: clients in any order, each reads some version since."""
    rng = np.random.default_rng(seed)
    newest = np.zeros(num_clients, int)
    rows = []
    for job in range(num_jobs):
        client, version = int(rng.integers(num_clients)), job // size
        read = int(rng.integers(newest[client], version + 1)) if job else 0
        rows.append((f"c{client}", version + FIRST, version - read, read + 3))
        newest[client] = (job + 1) // size
    return pd.DataFrame(rows, columns=["client", "position", "staleness", "read"])


def written(folder: Path, frame: pd.DataFrame) -> Path:
    frame.to_csv(path := folder / "log.csv", index=False)
    return path


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("stated", ["staleness", "read_version"])
def test_an_order_is_a_timeline_in_commits(
    tmp_path: Path, stated: str, size: int
) -> None:
    log = drawn(4, 60, size, size)
    frame = log.rename(columns={"read": "read_version"})[["client", "position", stated]]
    # Rows of a version stay in their order; versions may stand anywhere.
    mixed = frame.assign(by=-frame["position"]).sort_values("by", kind="stable")
    path = written(tmp_path, mixed.drop(columns="by"))
    if stated == "read_version":  # the first row has read the first version
        path = written(tmp_path, frame)
    study = import_log(path, tmp_path / "imported")
    jobs = study.table("jobs").sort_values("arrived_time", kind="stable")
    assert [*jobs["read_version"]] == [*(log["read"] - 3)]
    assert [*jobs["commit"]] == [*(log["position"] - FIRST + 1)]
    number = study.table("clients").set_index("client_label")["client"]
    assert [*jobs["client"]] == [*log["client"].map(number)]
    np.testing.assert_allclose(jobs["arrived_time"], np.arange(1, 61) / size)
    assert study.manifest["runs"][0]["protocol"] == (
        "asynchronous" if size == 1 else "buffered"
    )


def test_an_order_alone_takes_clients_to_read_at_once(tmp_path: Path) -> None:
    log = drawn(3, 30, 1, 0)
    path = written(tmp_path, log[["client", "position"]])
    with pytest.warns(StudyWarning, match="no column staleness or read_version"):
        study = import_log(path, tmp_path / "imported")
    last: dict[str, int] = {}
    wanted = []
    for position, client in enumerate(log["client"], 1):
        wanted.append(last.get(client, 0))
        last[client] = position
    jobs = study.table("jobs").sort_values("arrived_time")
    assert [*jobs["read_version"]] == wanted


def test_learning_follows_an_order_as_it_follows_times(tmp_path: Path) -> None:
    log = drawn(5, 40, 1, 2)
    import_log(written(tmp_path, log.drop(columns="read")), tmp_path / "order")
    # The same order with uneven seconds: a version stands from its commit to the next.
    made = np.r_[0, np.cumsum(np.random.default_rng(0).uniform(1, 9, len(log)))]
    number = log["position"].to_numpy() - FIRST
    times = {"read_time": made[number - log["staleness"]], "arrived_time": made[1:]}
    own = pd.Series(made[1:]).groupby(log["client"]).shift(1, fill_value=0.0)
    times["read_time"] = np.maximum(times["read_time"], own)
    import_log(written(tmp_path, log[["client"]].assign(**times)), tmp_path / "times")
    learned = {}
    for kind in ("order", "times"):
        run = scenario(
            SGD, {"clients": None, "timeline": {"replay": str(tmp_path / kind)}},
            {"stop": {"commits": 30}},
        )  # fmt: skip
        learned[kind] = studies.simulate(run, tmp_path / f"learned-{kind}")
    one, other = (each.table("commits") for each in learned.values())
    assert len(one) == 30
    np.testing.assert_array_equal(one["loss"], other["loss"])
    assert any("no times" in line for line in doubts.notes(learned["order"]))
    assert not any("no times" in line for line in doubts.notes(learned["times"]))


def test_what_needs_seconds_is_left_out_or_refused(tmp_path: Path) -> None:
    path = written(tmp_path, drawn(3, 20, 1, 1).drop(columns="read"))
    study = import_log(path, tmp_path / "imported")
    headings = {str(name) for _, frame in report.tables(study) for name in frame}
    assert {"mean staleness", "uploads"} <= headings
    assert not [name for name in headings if "/s" in name or "(s)" in name]
    assert "utilisation" not in headings
    assert any("order and no times" in line for line in doubts.notes(study))
    with pytest.raises(DataError, match="must have times to be fitted, but has an or"):
        world_of(read_log(path), tmp_path / "world")


WRONG: dict[str, tuple[dict[str, list[Any]], str]] = {
    "gap": ({"position": [5, 10]}, r"line 3: .* follows one of the log, got 10; add"),
    "fraction": ({"staleness": [0, 0.5]}, "line 3: must have a whole number as stalen"),
    "before the log": ({"staleness": [0, 2]}, "line 3: must have a staleness of a ver"),
    "future": ({"read_version": [0, 2]}, "line 3: must have a read_version of a versi"),
    "two": ({"staleness": [0, 0], "read_version": [0, 1]}, "got both; remove one"),
    "lost": ({"position": [1, 2], "outcome": ["applied", "lost"]}, "line 3: must be a"),
    "side by side": (
        {"client": ["a", "a"], "staleness": [0, 1]},
        "line 3: must have read version 1 of the log or a later one, .* has read 0;",
    ),
}


@pytest.mark.parametrize(("columns", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_have_been_is_refused(
    columns: dict[str, list[Any]], message: str, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"client": ["a", "b"], **columns})
    with pytest.raises(DataError, match=message):
        read_log(written(tmp_path, frame))


def test_columns_of_others_are_mapped(tmp_path: Path) -> None:
    log = drawn(3, 20, 1, 3)
    other = log.rename(columns={"client": "client_id", "position": "total_agg"})
    path = written(tmp_path, other.assign(local_train_loss=1.0))
    found = read_log(path, columns_of("client=client_id,position=total_agg"))
    assert found.in_commits
    assert [*found.table.numbers("commit")] == [*log["position"]]
    stale = found.times["applied_time"] - 1 - np.floor(found.times["read_time"])
    assert (stale == log["staleness"]).all()
