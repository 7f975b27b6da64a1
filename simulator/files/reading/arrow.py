"""Tables in files: Parquet, and columns of numbers of either form."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from ...parts.errors import DataError
from . import files, limits, table
from .columns import ArrowColumns, Columns, TextColumns

if TYPE_CHECKING:
    pass

PIECE = 4096
"""Rows of a Parquet file that are read at a time."""


def parquet(path: Path, columns: Sequence[str] | None = None) -> ArrowColumns:
    """Returns the columns of a Parquet file.

    Args:
        path: Path of the file.
        columns: Columns to be read; None for all.

    Raises:
        DataError: It cannot be read, is damaged or too large, or has no rows or not
            these columns.
    """
    import pyarrow as pa
    from pyarrow import parquet as reader

    files.note(path)
    try:
        packed, pieces, size = path.stat().st_size, [], 0
        with reader.ParquetFile(path, page_checksum_verification=True) as file:
            _refuse_missing(path, columns or (), file.schema_arrow.names)
            table.check_parquet(file, columns, packed)
            for piece in file.iter_batches(PIECE, columns=columns and [*columns]):
                # The footer does not know how often a long text is repeated.
                limits.check(size := size + piece.nbytes, packed)
                pieces.append(piece)
            kept = [file.schema_arrow.field(name) for name in columns or ()]
            schema = pa.schema(kept) if columns else file.schema_arrow
            cells = pa.Table.from_batches(pieces, schema)
        cells.validate(full=True)
    except DataError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(
            f"{path} must be a Parquet file, got: {_said(error)}; write it again"
        ) from error
    return ArrowColumns(path, cells)


def measurements(
    path: Path, columns: Sequence[str]
) -> dict[str, Float64[np.ndarray, " N"]]:
    """Returns columns of a CSV or Parquet file as finite numbers.

    Raises:
        DataError: a damaged file, a column that is not there, or no numbers in it.
    """
    if path.suffix == ".parquet":
        found: Columns = parquet(path, columns)
    else:
        found = TextColumns(path)
        _refuse_missing(path, columns, found.names)
    cells = found.several(columns)
    for name, values in cells.items():
        if values.ndim > 1:
            raise DataError(
                f"column {name!r} of {path} must hold a number in every row, got "
                f"arrays of {values[0].size}; take another column"
            )
    return {name: values.astype(np.float64) for name, values in cells.items()}


def _refuse_missing(path: Path, wanted: Sequence[str], held: Sequence[str]) -> None:
    for name in wanted:
        if name not in held:
            raise DataError(
                f"{path} must have a column {name!r}, got {', '.join(held)}; name one "
                f"of these"
            )


def _said(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
