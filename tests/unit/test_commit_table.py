"""The table of commits says of each commit what all of its contributions come to."""

from typing import Any

import numpy as np
import pytest

from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.engine.results import rows as tables
from stalesim.simulator.engine.results.rows import CommitTable, Staleness
from stalesim.simulator.engine.row_stream import Record
from stalesim.simulator.files import timeline as record_of_rows
from stalesim.simulator.files.timeline import NO_COMMIT, Chunk, Kind, Rows, effects
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import expand
from tests.support import Memory

GATHERING: dict[str, dict[str, Any]] = {
    "buffered": {"kind": "buffered", "size": 3},
    "window": {"kind": "buffered", "window": 1.5},
    "grace": {"kind": "buffered", "grace": 0.5},
    "grows": {"kind": "buffered", "size": {"values": [1, 3], "commits": [17]}},
    "collect": {"kind": "collect", "count": 4, "filter": "start"},
    "warm": {"kind": "asynchronous", "warm_up": True},
    "phases": {"kind": "phases"},
    "hierarchy": {"kind": "hierarchy", "edges": 2, "cloud": "asynchronous"},
    "uneven": {"kind": "hierarchy", "edges": 4, "rounds": 2, "cloud": "asynchronous"},
}


def chunks_of(protocol: dict[str, Any]) -> list[Chunk]:
    link = {"latency": {"law": "expon", "scale": 0.3}}
    clients = {"number": 5, "compute": {"law": "expon", "scale": "m"}, "download": link}
    tree = {"name": "x", "seed": 3, "stop": {"commits": 40}, "protocol": protocol}
    (run,) = expand(WorldScenario.model_validate(tree | {"clients": clients}))
    return list(timeline(run).chunks(16))


def records(chunks: list[Chunk], length: int) -> list[Record]:
    """Returns records that end within chunks, as an engine's do, or with several."""
    rows = Rows(*map(np.concatenate, zip(*(c.rows for c in chunks), strict=True)))
    ends = np.cumsum([chunk.rows.time.size for chunk in chunks])
    found = []
    for start in range(0, rows.time.size, length):
        stop = min(start + length, rows.time.size)
        ended = [c for c, end in zip(chunks, ends, strict=True) if start < end <= stop]
        piece = rows.slice(start, stop)
        found.append(Record(0, piece, {}, ended, [], [], None, False, False))
    return found


def written(parts: list[Record], *, interrupted: bool = False) -> Memory:
    memory = Memory()
    writer: Any = memory
    made = CommitTable(0, writer)
    for record in parts:
        made.add(record)
        if interrupted:  # a run that was resumed
            state, made = made.state(), CommitTable(0, writer)
            made.restore(state)
        for chunk in record.chunks:
            made.apply(chunk.jobs)
            made.write(chunk.rows)
    return memory


@pytest.mark.parametrize("length", [5, 16, 40])
@pytest.mark.parametrize("name", GATHERING)
def test_a_commit_counts_all_that_it_applies(name: str, length: int) -> None:
    chunks = chunks_of(GATHERING[name])
    memory = written(records(chunks, length))
    kinds = np.concatenate([part["kind"].codes for part in memory.tables["commits"]])
    made = kinds == Kind.COMMIT
    jobs = [chunk.jobs for chunk in chunks]
    commit = np.concatenate([each.commit for each in jobs])
    read = np.concatenate([each.read_version for each in jobs])
    columns = ("commit", "num_contributions", "staleness_mean", "staleness_max")
    table = [memory.column("commits", column)[made] for column in columns]
    assert len(table[0]) >= 40
    for number, count, mean, largest in zip(*table, strict=True):
        ages = number - 1 - read[commit == number]
        assert (count, largest) == (ages.size, ages.max())
        assert mean == pytest.approx(ages.mean())
    assert table[1].sum() == (commit != NO_COMMIT).sum()
    assert table[1].max() > 1
    gathered = ~made & (kinds == Kind.CONTRIBUTE)
    assert (memory.column("commits", "num_contributions")[gathered] == 1).all()


@pytest.mark.parametrize("length", [5, 16, 40])
def test_a_resumed_run_has_the_same_table(length: int) -> None:
    parts = records(chunks_of(GATHERING["buffered"]), length)
    memories = written(parts), written(parts, interrupted=True)
    for column in ("commit", "num_contributions", "staleness_mean", "staleness_max"):
        one, other = (memory.column("commits", column) for memory in memories)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", GATHERING)
def test_a_new_kind_of_rows_is_described_next_to_its_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All who count or show rows take its effect from there, and ask for no kind."""
    chunks = chunks_of(GATHERING[name])
    twins = len(Kind) + np.arange(len(Kind))
    doubled = (np.tile(column, 2) for column in record_of_rows._EFFECTS)
    monkeypatch.setattr(record_of_rows, "_EFFECTS", record_of_rows.Effect(*doubled))
    names = (*(kind.name for kind in Kind), *(f"NEW_{kind.name}" for kind in Kind))
    monkeypatch.setattr(tables, "KINDS", names)
    new = [c._replace(rows=c.rows._replace(kind=twins[c.rows.kind])) for c in chunks]
    found = []
    for these in (chunks, new):
        memory, ages = written(records(these, 5)), Staleness(5, 5)
        for chunk in these:
            record_of_rows.check(chunk.rows, 100)
        for part in records(these, 16):
            ages.add(part)
        uploads = [record_of_rows.further_uploads(each.rows, 7) for each in these]
        commits = [effects(each.rows.kind).commits for each in these]
        columns = memory.tables["commits"][0].keys() - {"kind"}
        found.append(
            [
                *map(np.concatenate, (uploads, commits)),
                *(memory.column("commits", column) for column in sorted(columns)),
                *(ages.contributions.state()[key] for key in ("count", "total")),
            ]
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    shown = {w for part in memory.tables["commits"] for w in part["kind"].words}
    assert "NEW_COMMIT" in shown
