"""Writes the tables of a study during its runs."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...parts.json_text import Tree
from . import parts
from .columns import COLUMNS, FURTHER, TraceColumn, outward
from .disk import DISK, Disk, Files

if TYPE_CHECKING:
    import pyarrow as pa


class Categorical(NamedTuple):
    """A column of words: few different ones, many rows.

    Attributes:
        codes: Index of each row's word.
        words: The different words.
    """

    codes: np.ndarray
    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)


Columns = Mapping[str, np.ndarray | Categorical]
"""Rows of a table: arrays of equal length, by column."""


PART_ROWS = 100_000
PART_SECONDS = 30.0
"""A part is written when it has this number of rows, or this age."""


class Writer:
    """Writes tables of one study as Parquet parts, renamed into place when finished.

    Attributes:
        parts: Files of the parts written so far, with their seals.
        rows: Number of rows of each run in each table, written or not yet.
        next_part: Number of the part that is written next.
    """

    def __init__(self, folder: Path, name: str, disk: Disk = DISK) -> None:
        self._folder, self._name, self._disk = folder, name, disk
        self._tables: dict[str, list[Columns]] = {}
        self._pending: dict[str, int] = {}
        self._since = time.monotonic()
        self.next_part = 0
        self.parts: Files = {}
        self.rows: dict[int, dict[str, int]] = {}

    def state(self) -> Tree:
        """Returns the state to continue from; everything is flushed before."""
        self.flush()
        rows = {str(run): mine for run, mine in self.rows.items()}
        return {"next_part": self.next_part, "parts": self.parts, "rows": rows}

    def restore(self, state: Tree) -> None:
        """Continues from a result of `state`."""
        self.next_part, self.parts = state["next_part"], state["parts"]
        self.rows = {int(run): mine for run, mine in state["rows"].items()}

    def append(self, table: str, columns: Columns) -> None:
        """Adds rows to a table."""
        runs = np.asarray(columns["run"])
        if not runs.size:
            return
        self._tables.setdefault(table, []).append(columns)
        self._pending[table] = self._pending.get(table, 0) + len(runs)
        for run, count in zip(*np.unique(runs, return_counts=True), strict=True):
            mine = self.rows.setdefault(int(run), {})
            mine[table] = mine.get(table, 0) + int(count)
        old = time.monotonic() - self._since > PART_SECONDS
        if old or self._pending[table] >= PART_ROWS:
            self.flush()

    def flush(self) -> None:
        """Writes everything that was added so far."""
        import pyarrow as pa

        for name, pieces in self._tables.items():
            names = dict.fromkeys(column for piece in pieces for column in piece)
            columns = {column: _concatenate(name, column, pieces) for column in names}
            file = parts.file_name(self._name, self.next_part)
            path = self._folder / name / file
            seal = parts.write(self._disk, path, pa.table(columns))
            self.parts.setdefault(name, {})[file] = seal
        self._tables, self._pending = {}, {}
        self.next_part += 1
        self._since = time.monotonic()


def _concatenate(table: str, column: str, pieces: list[Columns]) -> "pa.Array":
    import pyarrow as pa

    further = TraceColumn(FURTHER.get(table, "float32"), "", "")
    of = COLUMNS[table].get(column, further)
    kind, arrays = parts.arrow_type(of.dtype), []
    for piece in pieces:
        cells = piece.get(column)
        if cells is None:
            arrays.append(pa.nulls(len(piece["run"]), kind))
        elif isinstance(cells, Categorical):
            codes = pa.array(cells.codes, pa.int32())
            arrays.append(pa.DictionaryArray.from_arrays(codes, list(cells.words)))
        elif of.numbered:
            arrays.append(outward(cells))
        else:
            arrays.append(pa.array(list(cells) if np.ndim(cells) == 2 else cells, kind))
    return pa.chunked_array(arrays, kind)
