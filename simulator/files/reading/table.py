"""What all tables have in common: columns of different names, and numbers in bounds."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Shaped

from ...parts.errors import DataError
from . import files

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

NUMBER = 8
"""Bytes of a number in memory."""
FLOAT32_MAX = np.float64(np.finfo(np.float32).max)


def refuse_repeated(path: Path, columns: Sequence[str]) -> None:
    """Refuses two columns of one name."""
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise DataError(
            f"{path} must name every column differently, got {min(twice)!r} twice; "
            "rename one of them"
        )


def check_parquet(
    file: "ParquetFile", columns: Sequence[str] | None, packed: int
) -> None:
    """Refuses a Parquet file that would take too much memory.

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
    """Returns whether each value is finite, in float32 too."""
    # A number of Python would become one of half precision there: infinity.
    return np.abs(values) <= FLOAT32_MAX


def number(cell: str) -> float:
    """Returns the number in a cell, NaN if there is none."""
    try:
        return float(cell)
    except ValueError:
        return float("nan")
