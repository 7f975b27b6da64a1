"""Statistics kept while a timeline goes: its start, its ages, and what was missed."""

from pathlib import Path

import numpy as np
import pytest

from stalesim.analysis.timelines import report
from stalesim.analysis.timelines.view import view
from stalesim.simulator.files.study import StudyError, is_summary
from stalesim.simulator.files.summary import Summary
from stalesim.simulator.files.timeline import (
    NO_COMMIT,
    NO_INCIDENTS,
    Chunk,
    Jobs,
    Outcome,
    Rows,
)
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.studies.saved import record

EXPON = {"law": "expon"}


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
    views = []
    for kept in ("everything", "summary"):
        scenario = WorldScenario.model_validate(tree | {"record": kept})
        views.append(view(record(scenario, tmp_path / kept)))
    for seen in views:
        found = dict(report.tables(seen))
        (title,) = (title for title in found if "missed" in title)
        cells = found[title].to_dict("records")
        assert cells == [{"variant": "base", "started": "4", "missed": "2"}]
    incidents = views[0].incidents
    missed = incidents.loc[incidents["incident"] == "MISSED", "time"]
    assert missed.tolist() == [3, 6]
    assert dict(report.standard(views[0]))


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
    study = record(WorldScenario.model_validate(WORLD), tmp_path / "out")
    assert is_summary(study.manifest)
    with pytest.raises(
        StudyError, match="there is no table jobs, because the scenario"
    ):
        study.table("jobs")
