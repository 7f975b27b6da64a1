"""When parts of tables are written, and when they are joined."""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.files.study import Writer, parts, writing
from stalesim.simulator.files.study.disk import DISK


def commits(first: int, number: int) -> dict[str, Any]:
    """Returns some columns of the table `commits`, in which rows tell their place."""
    return {"run": np.zeros(number, np.int32), "commit": first + np.arange(number)}


def rows_of(folder: Path, writer: Writer) -> list[list[int]]:
    return [
        parts.read(DISK, folder / "commits" / file, seal)["commit"].to_pylist()
        for file, seal in parts.ordered(writer.parts["commits"]).items()
    ]


def test_rows_are_written_when_there_are_many_or_they_are_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(writing.time, "monotonic", lambda: now)
    monkeypatch.setattr(writing, "PART_ROWS", 10)
    writer = Writer(tmp_path, "w")
    writer.append("commits", commits(0, 4))
    writer.append("commits", commits(4, 5))
    assert writer.parts == {}
    writer.append("commits", commits(9, 1))  # the tenth row
    assert rows_of(tmp_path, writer) == [list(range(10))]
    writer.append("commits", commits(10, 2))
    now += writing.PART_SECONDS
    writer.append("commits", commits(12, 1))  # as old as a part may get
    assert len(writer.parts["commits"]) == 1
    now += 1
    writer.append("commits", commits(13, 1))
    assert rows_of(tmp_path, writer)[1:] == [[10, 11, 12, 13]]
    now += writing.PART_SECONDS  # since that part was written
    writer.append("commits", commits(14, 1))
    assert len(writer.parts["commits"]) == 2
    writer.flush()
    assert rows_of(tmp_path, writer)[2:] == [[14]]
    assert writer.rows == {0: {"commits": 15}}


@pytest.mark.parametrize(
    ("sizes", "left"),
    [
        ((5, 5), [5, 5]),  # on average as many rows as are enough
        ((9, 1), [9, 1]),
        ((5, 4), [9]),
        ((4, 5, 5), [14]),
        ((3,), [3]),
    ],
)
def test_parts_are_joined_unless_they_are_large(
    sizes: tuple[int, ...],
    left: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "ENOUGH", 5)
    writer, first = Writer(tmp_path, "w"), 0
    for size in sizes:
        writer.append("commits", commits(first, size))
        writer.flush()
        first += size
    noted: list[Any] = []
    rows = {"commits": first}
    parts.compact(DISK, tmp_path, writer.parts, rows, noted.append)
    found = rows_of(tmp_path, writer)
    assert [len(one) for one in found] == left
    assert list(chain(*found)) == list(range(first))
    assert len(noted) == (len(left) < len(sizes))
    on_disk = {path.name for path in (tmp_path / "commits").iterdir()}
    assert on_disk == set(writer.parts["commits"])
