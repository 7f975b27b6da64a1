"""The journal of a study that is being written: a line for each thing that is done.

A line is a checksum and a JSON object. It says which runs have ended and which files
hold their rows (`ends`, `parts`), or which file replaces all files of a table
(`joined`). A file counts from its line on: what no line names was left by a kill.
"""

import json
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...parts.errors import StudyError
from .disk import Disk

Files = dict[str, dict[str, list[int]]]
"""Bytes and CRC-32 of the files of each table: `{table: {file: [bytes, crc]}}`."""


class StudyWarning(UserWarning):
    """Something about a study that its reader must know."""


class Noted(NamedTuple):
    """The contents of a journal.

    Attributes:
        ends: Ends of runs, by their numbers.
        files: Files of the tables: those of the manifest, as changed since.
    """

    ends: dict[int, dict[str, Any]]
    files: Files


def line(record: dict[str, Any]) -> bytes:
    """Returns a record as a line of a journal."""
    text = json.dumps(record, allow_nan=False).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read(disk: Disk, path: Path, files: Files, *, quietly: bool = False) -> Noted:
    """Returns the contents of a study's journal; nothing if there is none.

    The last line may be cut off by a kill; it is of a task that is to be repeated. Any
    other line that is not as it was written is passed over, with a warning: its runs
    count as not ended.

    Args:
        disk: Disk of the study.
        path: Path of the journal.
        files: Files of the tables, as the manifest has them.
        quietly: Whether there is no warning.

    Raises:
        StudyError: the file cannot be read.
    """
    found = Noted({}, {table: dict(mine) for table, mine in files.items()})
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return found  # the last session ended in order, and removed it
    except OSError as error:
        raise StudyError(
            f"{path}: must be readable, but {error.strerror or error}; mend that first"
        ) from None
    damaged = 0
    for record in _records(data):
        if record is None:
            damaged += 1
            continue
        # A joined file replaces the parts so far; parts noted later come on top.
        for table, mine in record.get("joined", {}).items():
            found.files[table] = mine
        for table, mine in record.get("parts", {}).items():
            found.files.setdefault(table, {}).update(mine)
        found.ends.update((int(run), end) for run, end in record["ends"].items())
    if damaged and not quietly:
        warnings.warn(
            f"{path}: {damaged} lines must be as they were written, but are damaged; "
            f"their runs count as not ended: stalesim resume {path.parent} repeats "
            f"them",
            StudyWarning,
            stacklevel=2,
        )
    return found


def _records(data: bytes) -> Iterator[dict[str, Any] | None]:
    """Yields the records of a journal, None for each that is damaged."""
    *lines, _ = data.split(b"\n")  # the last one has no end, or nothing in it
    for text in lines:
        checksum, _, record = text.partition(b" ")
        yield json.loads(record) if checksum == b"%08x" % zlib.crc32(record) else None
