"""Statistics that are kept while a timeline goes equal those of its whole record."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis.timelines import chrome, report
from stalesim.analysis.timelines.view import View, view
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.timeline import (
    NO_COMMIT,
    NO_INCIDENTS,
    Chunk,
    Jobs,
    Outcome,
    Rows,
)
from stalesim.simulator.timelines.saved import record
from stalesim.simulator.timelines.summary import Summary
from stalesim.simulator.trace import StudyError, is_summary

EXPON = {"law": "expon"}
LATENCY = {"latency": {"law": "expon", "scale": 0.2}}
ON_OFF = {
    "kind": "on_off",
    "on": {"law": "expon", "scale": 9},
    "off": {"law": "expon", "scale": 3},
}
CLIENTS: dict[str, dict[str, Any]] = {
    "alone": {"compute": EXPON},
    "idle": {"idle": {"law": "expon", "scale": 3}, "compute": EXPON},
    "lattice": {"compute": {"law": "poisson", "mu": 2.0, "shift": 1}},
    "stages": {"idle": EXPON, "compute": EXPON, "upload": LATENCY, "download": LATENCY},
    "losses": {
        "compute": EXPON,
        "upload": LATENCY,
        "loss": {"chance": 0.3, "timeout": 4.0, "retries": 1},
    },
    "lost early": {
        "compute": {"law": "lognorm", "s": 1.5},
        "upload": {"latency": {"law": "expon", "scale": 4}},
        "loss": {"chance": 0.6, "timeout": 9.0, "retries": 0},
    },
    "coming and going": {
        "compute": EXPON,
        "availability": ON_OFF,
        "crashes": {"after": {"law": "expon", "scale": 20}, "down": EXPON},
    },
    "groups": {
        "compute": EXPON,
        "groups": {"fast": {"number": 4}, "slow": {"number": 8, "idle": EXPON}},
    },
    "few in flight": {"compute": EXPON, "selection": {"in_flight": 3}},
    "open": {
        "compute": EXPON,
        "selection": {
            "in_flight": 3,
            "arrivals": {"gap": {"law": "expon", "scale": 0.3}},
        },
    },
}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "asynchronous": {"kind": "asynchronous"},
    "rejecting": {"kind": "asynchronous", "staleness_bound": 9, "beyond": "reject"},
    "buffered": {"kind": "buffered", "size": 5},
    "window": {"kind": "buffered", "window": 2.0},
    "t-synchronous": {"kind": "t_synchronous", "t": 4},
    "synchronous": {"kind": "synchronous"},
    "gossip": {"kind": "gossip", "graph": {"kind": "ring"}, "average": "neighbours"},
}

FIT_GOSSIP = ("alone", "idle", "lattice", "groups")
"""Clients that are always there and have no link but for uploads."""
WORLDS = [
    (clients, protocol)
    for clients in CLIENTS
    for protocol in PROTOCOLS
    if protocol != "gossip" or clients in FIT_GOSSIP
    if (clients, protocol) != ("open", "synchronous")  # which has rounds
]


def both(tmp_path: Path, tree: dict[str, Any], chunk: int) -> tuple[View, View]:
    """Returns the views of a scenario's whole record and of its summary."""
    views = []
    for kept in ("everything", "summary"):
        file = tmp_path / f"{kept}.yaml"
        file.write_text(pd.Series(tree | {"record": kept}).to_json())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("stalesim.simulator.timelines.saved.PAIRS", chunk)
            study = record(read_any(file, ()), tmp_path / kept)
        views.append(view(study))
    return views[0], views[1]


def assert_same(whole: View, summed: View) -> None:
    assert (whole.is_whole, summed.is_whole) == (True, False)
    for name in ("by_run", "by_client"):
        expected, found = getattr(whole, name), getattr(summed, name)
        assert [*expected] == [*found]
        pd.testing.assert_frame_equal(
            expected, found, check_dtype=False, rtol=1e-9, atol=1e-9
        )
    pd.testing.assert_frame_equal(whole.starts, summed.starts, check_dtype=False)
    assert whole.by_run["waves"].notna().all()
    for _, runs in whole.runs.groupby("group"):
        expected = whole.histogram(runs)
        pd.testing.assert_frame_equal(
            expected, summed.histogram(runs), check_dtype=False
        )
    for name in ("commits", "contributions", "virtual_s", "stop"):
        assert whole.runs[name].tolist() == summed.runs[name].tolist()
    clients = summed.study.table("clients")
    for name in ("num_jobs", "num_applied", "staleness_mean", "staleness_max"):
        expected = whole.study.table("clients")[name]
        pd.testing.assert_series_equal(expected, clients[name])


@pytest.mark.parametrize(("clients", "protocol"), WORLDS)
def test_a_summary_measures_what_the_whole_record_does(
    clients: str, protocol: str, tmp_path: Path
) -> None:
    r = random.Random(f"{clients}/{protocol}")
    stop = {"commits": r.choice([5, 60, 300])} if r.random() < 0.7 else {"time": 25.0}
    own = {"number": 12} if "groups" not in CLIENTS[clients] else {}
    tree = {
        "name": "world",
        "seed": r.randrange(100),
        "replicates": 2,
        "clients": own | CLIENTS[clients],
        "protocol": PROTOCOLS[protocol],
        "stop": stop,
    }
    whole, summed = both(tmp_path, tree, r.choice([7, 64, 65_536]))
    assert_same(whole, summed)
    if clients == "groups":
        pd.testing.assert_frame_equal(
            *(whole.by_client_group, summed.by_client_group),
            check_dtype=False,
            rtol=1e-9,
        )
        assert len(whole.by_client_group) == 3


def test_starts_of_an_open_system_that_were_missed_are_shown(tmp_path: Path) -> None:
    """In flight from 1 to 3.5, 2 to 4.5, 4 to 6.5, 5 to 7.5; 3 and 6 find two."""
    arrivals = {"gap": {"law": "constant", "value": 1}}
    tree = {
        "name": "world",
        "clients": {
            "number": 10,
            "compute": {"law": "constant", "value": 2.5},
            "selection": {"in_flight": 2, "arrivals": arrivals},
        },
        "protocol": {"kind": "asynchronous"},
        "stop": {"time": 6.8},
    }
    views = both(tmp_path, tree, 65_536)
    for seen in views:
        found = dict(report.tables(seen))
        (title,) = (title for title in found if "missed" in title)
        cells = found[title].to_dict("records")
        assert cells == [{"run": "base", "started": "4", "missed": "2"}]
    report.export(views[0], tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    missed = [(e["ts"], e["tid"]) for e in events if e["name"] == "MISSED"]
    assert missed == [(3e6, chrome.SERVER), (6e6, chrome.SERVER)]
    assert report.save(views[0], tmp_path)


def jobs(*told: tuple[int, float, float, int]) -> Chunk:
    """Returns a chunk of jobs: client, read, end and commit, of which 0 is none."""
    client, read, end, commit = map(np.array, zip(*told, strict=True))
    lost = commit == 0
    times = dict.fromkeys(("computed_time", "sent_time"), end)
    own = Jobs(
        client=client,
        job=np.zeros(client.size, int),
        refresh=np.zeros(client.size, int),
        read_time=read,
        begun_time=read,
        arrived_time=np.where(lost, np.nan, end),
        applied_time=np.where(lost, np.nan, end),
        read_version=np.maximum(commit - 1, 0),
        commit=np.where(lost, NO_COMMIT, commit),
        outcome=np.where(lost, Outcome.LOST, Outcome.APPLIED),
        uploads=np.ones(client.size, int),
        **times,
    )
    rows = Rows(end[~lost], *(np.zeros((~lost).sum(), int) for _ in Rows._fields[1:]))
    return Chunk(rows, own, None, NO_INCIDENTS)


def test_a_job_known_late_to_have_been_lost_early_has_all_counted_once_more() -> None:
    # Three fit in the system. Of client 2's first job, read at 0, it is said after 4 s
    # that it was lost, and that nothing is known of it after 3 s.
    first = jobs((0, 0.0, 1.0, 1), (1, 0.0, 2.0, 2), (0, 1.0, 2.5, 3), (0, 2.5, 4.0, 4))
    late = jobs((2, 0.0, 3.0, 0), (1, 2.0, 5.0, 5), (0, 4.0, 6.0, 6), (0, 6.0, 7.0, 7))
    found = Summary(3, 3)
    found.add(first)
    assert found.over == 2.5  # by then three had ended that read first, as far as known
    assert not found.misplaced
    found.add(late)
    assert found.over == 3.0
    assert found.misplaced  # what was applied at 4 s was counted as of the start
    again = Summary(3, 3, start_s=found.over)
    for chunk in (first, late):
        again.add(chunk)
    again.finish(7.0)
    assert again.later.contributions.tolist() == [3, 1, 0]
    assert again.of_start.contributions.tolist() == [2, 1, 0]
    assert again.later.busy.tolist() == [1 + 2 + 1, 2.0, 0.0]


def test_ages_beyond_those_that_are_counted_so_far_are_counted_too() -> None:
    chunk = jobs((0, 0.0, 1.0, 1), (1, 0.0, 2.0, 5000), (0, 1.0, 3.0, 70_000))
    old = chunk._replace(jobs=chunk.jobs._replace(read_version=np.zeros(3, int)))
    found = Summary(2, 2)
    found.add(old)
    found.finish(3.0)
    table = found.ages(0)
    assert table["staleness"].tolist() == [0, 4999, 69_999]
    assert table["count"].tolist() == [1, 1, 1]


WORLD = {
    "name": "world",
    "clients": {"number": 3, "compute": EXPON},
    "protocol": {"kind": "asynchronous"},
    "stop": {"commits": 20},
    "record": "summary",
}


def test_a_table_that_was_left_out_is_asked_for_in_vain(tmp_path: Path) -> None:
    file = tmp_path / "world.yaml"
    file.write_text(pd.Series(WORLD).to_json())
    study = record(read_any(file, ()), tmp_path / "out")
    assert is_summary(study.manifest)
    with pytest.raises(StudyError, match="there is no table jobs, since the scenario"):
        study.table("jobs")
