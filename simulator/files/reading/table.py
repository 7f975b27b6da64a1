"""Tables of comma-separated values, read without pandas."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float64, Shaped

from ...parts.errors import DataError
from . import files

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

NUMBER = 8
"""Bytes of a number in memory."""
FLOAT32_MAX = np.float64(np.finfo(np.float32).max)


class Table(NamedTuple):
    """The cells of a file, as text.

    Attributes:
        path: Path of the file that they were read from.
        columns: Names of the columns.
        rows: Cells of each row.
        lines: Line of the file on which each row ends, from 1.
    """

    path: Path
    columns: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]


def read(path: Path, header: int = 0) -> Table:
    """Returns the cells of a csv file in UTF-8, gzipped or not; skips empty lines.

    Args:
        path: Path of the file.
        header: Number of rows before the one that holds the names of the columns.

    Raises:
        DataError: no text, no rows, a column named twice, or rows of unequal length.
    """
    content = files.read(path)
    if len(content) > files.MOST_TEXT:
        raise DataError(
            f"{path} must hold {files.shown(files.MOST_TEXT)} of text at most, got "
            f"{files.shown(len(content))}; save it as npz, or take fewer rows"
        )
    # Line by line, as the text of one cell may be as large as the file.
    text = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")
    try:
        reader = csv.reader(text)
        numbered = [(row, reader.line_num) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"{path} must be comma-separated text in UTF-8, got: {error}; check its "
            "quotes and its encoding"
        ) from error
    if len(numbered) < header + 2:
        raise DataError(
            f"{path} must hold {header + 1} header rows and at least one row of data, "
            f"got {len(numbered)} rows; check that it is whole"
        )
    columns = tuple(name.strip() for name in numbered[header][0])
    refuse_repeated(path, columns)
    rows, lines = map(list, zip(*numbered[header + 1 :], strict=True))
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(columns):
            raise DataError(
                f"{path} must have {len(columns)} cells in every row, got {len(row)} "
                f"in line {line}; check that it is whole"
            )
    return Table(path, columns, rows, lines)


def refuse_repeated(path: Path, columns: Sequence[str]) -> None:
    """Refuses two columns of one name."""
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise DataError(
            f"{path} must name every column differently, got {min(twice)!r} twice; "
            "rename one of them"
        )


def column(table: Table, name: str) -> list[str]:
    """Returns the cells of one column, stripped of blanks."""
    index = table.columns.index(name)
    return [row[index].strip() for row in table.rows]


def values(table: Table, name: str) -> Shaped[np.ndarray, " N"] | list[str]:
    """Returns a column as numbers if all of its cells are finite ones, else as text."""
    texts = column(table, name)
    found = np.array([number(text) for text in texts])
    return found if np.isfinite(found).all() else texts


def numbers(table: Table, columns: tuple[str, ...]) -> Float64[np.ndarray, "N P"]:
    """Returns columns as numbers.

    Raises:
        DataError: a cell that is no finite number, with its column and line.
    """
    place = {name: index for index, name in enumerate(table.columns)}
    indices = [place[name] for name in columns]
    cells = [[row[index] for index in indices] for row in table.rows]
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        values = np.array([[number(cell) for cell in row] for row in cells])
    bad = np.argwhere(~representable(values))
    if bad.size:
        row, index = bad[0]
        raise DataError(
            f"column {columns[index]!r} of {table.path} must hold finite numbers, got "
            f"{cells[row][index]!r} in line {table.lines[row]}; fill, encode or remove "
            "it"
        )
    return values


def check_parquet(
    file: "ParquetFile", columns: Sequence[str] | None, packed: int
) -> None:
    """Refuses a Parquet file that would take too much memory.

    Args:
        file: Opened file; its footer alone is looked at.
        columns: Columns to be read; None for all.
        packed: Bytes of the file.

    Raises:
        ValueError: the columns are too large; the message is one line.
    """
    footer = file.metadata
    width = footer.num_columns if columns is None else len(columns)
    # Sizes of single columns are not asked for: pyarrow ends the process where the
    # footer is damaged there.
    stored = sum(
        footer.row_group(number).total_byte_size
        for number in range(footer.num_row_groups)
    )
    files.check(max(stored, footer.num_rows * width * NUMBER), packed)


def representable(values: Shaped[np.ndarray, "*s"]) -> Shaped[np.ndarray, "*s"]:
    """Says of each value whether it is finite, in float32 too."""
    # A number of Python would become one of half precision there: infinity.
    return np.abs(values) <= FLOAT32_MAX


def number(cell: str) -> float:
    """Returns the number in a cell, NaN if there is none."""
    try:
        return float(cell)
    except ValueError:
        return float("nan")
