"""Writes the tables of a study while its runs go on."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simulator.trace import numbering, parts
from simulator.trace.columns import COLUMNS, Column

if TYPE_CHECKING:
    import pyarrow as pa


class Words(NamedTuple):
    """A column of words: few different ones, many rows.

    Attributes:
        codes: index of each row's word.
        words: that occur.
    """

    codes: np.ndarray
    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)


PART_ROWS = 100_000
PART_SECONDS = 30.0
"""A part is written when it has so many rows, or is so old."""


class Writer:
    """Writes tables of one study as Parquet parts, renamed into place when finished.

    A kill leaves every finished part readable.

    Args:
        folder: of the study.
        name: of this writer among those of the study, part of its files' names.
        first: number of its first part.
    """

    def __init__(self, folder: Path, name: str, first: int = 0) -> None:
        self._folder, self._name, self._part = folder, name, first
        self._tables: dict[str, list[dict[str, Any]]] = {}
        self._rows: dict[str, int] = {}
        self._since = time.monotonic()

    def append(self, table: str, columns: dict[str, Any]) -> None:
        """Adds rows to a table.

        Args:
            table: a key of `COLUMNS`.
            columns: arrays of equal length, by column.

        Raises:
            StudyError: the disk is full, or the folder cannot be written.
        """
        size = len(columns["run"])
        if not size:
            return
        self._tables.setdefault(table, []).append(columns)
        self._rows[table] = self._rows.get(table, 0) + size
        old = time.monotonic() - self._since > PART_SECONDS
        if old or self._rows[table] >= PART_ROWS:
            self.flush()

    def flush(self) -> None:
        """Writes everything that was added so far."""
        import pyarrow as pa

        for name, pieces in self._tables.items():
            names = dict.fromkeys(column for piece in pieces for column in piece)
            columns = {column: _concatenate(name, column, pieces) for column in names}
            parts.write(
                self._folder / name / f"part-{self._name}-{self._part:05d}.parquet",
                pa.table(columns),
            )
        self._tables, self._rows = {}, {}
        self._part += 1
        self._since = time.monotonic()


def _concatenate(table: str, column: str, pieces: list[dict]) -> "pa.Array":
    import pyarrow as pa

    dtype, *_, numbered = COLUMNS[table].get(column, Column("float32", "", ""))
    arrays = []
    for piece in pieces:
        size = len(piece["run"])
        if column not in piece:
            arrays.append(pa.nulls(size, parts.arrow_type(dtype)))
        elif numbered:
            arrays.append(numbering.outward(piece[column]))
        elif isinstance(piece[column], Words):
            codes, words = piece[column]
            arrays.append(
                pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), list(words))
            )
        elif np.ndim(piece[column]) == 2:
            arrays.append(pa.array(list(piece[column]), parts.arrow_type(dtype)))
        else:
            arrays.append(pa.array(piece[column], parts.arrow_type(dtype)))
    return pa.chunked_array(arrays, parts.arrow_type(dtype))
