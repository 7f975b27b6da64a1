"""Tables in files: Parquet, folders that Hugging Face's datasets saves, and numbers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from ..config.errors import DataError
from . import files, limits, table
from .columns import ArrowColumns, Columns, TextColumns

if TYPE_CHECKING:
    import pyarrow as pa

STATE = "state.json"
"""Names the data files of a saved set, in its folder."""
PIECE = 4096
"""Rows of a Parquet file that are read at a time."""
SPLITS = "dataset_dict.json"
"""Names the folders of a set that was saved with its division."""


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


def splits(folder: Path) -> dict[str, Path]:
    """Returns the folders of a saved set's parts; the set itself as "" if undivided.

    Raises:
        DataError: There is no saved set in the folder, or it is damaged.
    """
    if (folder / STATE).is_file():
        return {"": folder}
    named = _json(folder, SPLITS).get("splits")
    if not isinstance(named, list) or not named or not all(map(_is_plain, named)):
        raise _damaged(folder / SPLITS, f"the splits {named!r}")
    return {name: folder / name for name in named}


def paths(folder: Path) -> list[Path]:
    """Returns the files that make a saved set, whatever else lies in its folder.

    Raises:
        DataError: There is no saved set in the folder, or it is damaged.
    """
    found = [folder / SPLITS] if "" not in splits(folder) else []
    for part in splits(folder).values():
        found += [part / STATE, *_pieces(part)]
    return found


def saved(folder: Path) -> ArrowColumns:
    """Returns the columns of one part of a saved set.

    Args:
        folder: One of the folders that `splits` returns.

    Raises:
        DataError: A file is missing, damaged or too large, or there are no rows.
    """
    import pyarrow as pa

    tables = [_piece(path) for path in _pieces(folder)]
    try:
        cells = _labelled(pa.concat_tables(tables))
    except (pa.ArrowException, ValueError, AttributeError) as error:
        raise DataError(
            f"{folder} must hold files of the same columns, as described in them, got: "
            f"{_said(error)}; save it again"
        ) from error
    return ArrowColumns(folder, cells)


def _pieces(folder: Path) -> list[Path]:
    """Returns the data files of one part of a saved set, in their order."""
    state = _json(folder, STATE)
    try:
        names = [one["filename"] for one in state["_data_files"]]
    except (LookupError, TypeError) as error:
        raise _damaged(folder / STATE, "no list of data files") from error
    if not names or not all(map(_is_plain, names)):
        raise _damaged(folder / STATE, f"the data files {names!r}")
    if state.get("_indices_data_files"):
        raise DataError(
            f"{folder} must hold its rows in their order, got a table of indices; save "
            "it by a newer version of datasets, or after flatten_indices()"
        )
    return [folder / name for name in names]


def _piece(path: Path) -> "pa.Table":
    import pyarrow as pa

    try:
        packed = path.stat().st_size
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            cells = stream.read_all()
            limits.check(cells.nbytes, packed)
            cells.validate(full=True)
            return cells
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(
            f"{path} must be a whole file of a saved data set, got: {_said(error)}; "
            "save it again by save_to_disk"
        ) from error


def _labelled(cells: "pa.Table") -> "pa.Table":
    """Returns a table whose columns of classes are empty where a row has none.

    The library writes -1 there, as in test rows whose labels are kept secret.
    """
    from pyarrow import compute

    told = json.loads((cells.schema.metadata or {}).get(b"huggingface", b"{}"))
    features = told.get("info", {}).get("features", {})
    for number, name in enumerate(cells.column_names):
        feature = features.get(name)
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            column = cells[name]
            known = compute.call_function("greater_equal", [column, 0])
            column = compute.call_function("if_else", [known, column, None])
            cells = cells.set_column(number, name, column)
    return cells


def _json(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    if not path.is_file():
        raise DataError(
            f"{folder} must be a folder that save_to_disk of Hugging Face's datasets "
            f"wrote, got one without {name}; save the data set there"
        )
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, _said(error)) from error
    if not isinstance(found, dict):
        raise _damaged(path, f"a {type(found).__name__}")
    return found


def _is_plain(name: Any) -> bool:
    """Says whether a name is that of a file in the same folder, and no path."""
    return isinstance(name, str) and Path(name).name == name not in ("", "..")


def _damaged(path: Path, got: str) -> DataError:
    return DataError(
        f"{path} must describe a saved data set, got {got}; save it again by "
        "save_to_disk"
    )


def _said(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
