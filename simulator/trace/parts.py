"""The Parquet parts of a table: written, found and joined."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.scenario.errors import StudyError
from simulator.trace.columns import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa


ENOUGH = 10_000
"""Rows of a part, in the mean, from which on joining parts saves nothing."""


def arrow_type(dtype: str) -> "pa.DataType":
    """Returns the Arrow type of a `Column.dtype`."""
    import pyarrow as pa

    if dtype == "string":
        return pa.dictionary(pa.int32(), pa.string())
    if dtype.startswith("list of "):
        return pa.list_(arrow_type(dtype.removeprefix("list of ")))
    return {"bool": pa.bool_()}.get(dtype) or getattr(pa, dtype)()


def write(path: Path, table: "pa.Table") -> None:
    """Writes one part, renamed into place when it is finished.

    Raises:
        StudyError: the disk is full, or the folder cannot be written.
    """
    import pyarrow.parquet as pq

    partial = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, partial, compression="zstd")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StudyError(
            f"{path.parent.parent}: the study must be written, but "
            f"{error.strerror or error}; what was written before is kept; make room or "
            f"choose another folder by --out"
        ) from error


def found(folder: Path, name: str) -> list[Path]:
    """Returns the parts of a table, also where `compact` was killed half-way."""
    where = folder / name
    if not where.exists():
        where = folder / f"{name}.parts"
    return sorted(where.glob("part-*.parquet"))


def compact(folder: Path) -> None:
    """Joins the parts of a finished study's tables, unless they are large enough.

    The joined file is complete before the parts go, and a reader looks for those where
    a kill came between.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in COLUMNS:
        parts = sorted((folder / name).glob("part-*.parquet"))
        rows = sum(pq.read_metadata(path).num_rows for path in parts)
        if len(parts) < 2 or rows >= ENOUGH * len(parts):
            continue
        tables = [pq.read_table(path).unify_dictionaries() for path in parts]
        joined = pa.concat_tables(tables, promote_options="permissive")
        replaced = folder / f"{name}.joined"
        write(replaced / "part-all-00000.parquet", joined.unify_dictionaries())
        old = folder / f"{name}.parts"
        (folder / name).rename(old)
        replaced.rename(folder / name)
        shutil.rmtree(old)


def remove_parts(folder: Path, writers: set[str]) -> None:
    """Removes what some writers have left of a study's tables."""
    for name in COLUMNS:
        for path in (folder / name).glob("part-*.*"):
            if path.name.split("-")[1] in writers:
                path.unlink()


def recover(folder: Path) -> None:
    """Undoes, or completes, what a kill left half-way of `compact`."""
    for name in COLUMNS:
        shutil.rmtree(folder / f"{name}.joined", ignore_errors=True)
        old = folder / f"{name}.parts"
        if old.exists() and (folder / name).exists():
            shutil.rmtree(old)
        elif old.exists():
            old.rename(folder / name)
