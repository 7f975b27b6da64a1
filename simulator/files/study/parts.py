"""The Parquet files of a table: sealed when they are written, looked at when read."""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...parts.errors import DamageError
from .columns import COLUMNS
from .disk import Disk, Files, explained, replace

if TYPE_CHECKING:
    import pyarrow as pa


ENOUGH = 10_000
"""Average rows of a part from which joining parts saves nothing."""
JOINED = "all"
"""Replaces the writer in the name of a file that joins several writers' files."""

Filters = list[tuple[str, str, Any]]


def arrow_type(dtype: str) -> "pa.DataType":
    """Returns the Arrow type of a `Column.dtype`."""
    import pyarrow as pa

    if dtype == "string":
        return pa.dictionary(pa.int32(), pa.string())
    if dtype.startswith("list of "):
        return pa.list_(arrow_type(dtype.removeprefix("list of ")))
    return {"bool": pa.bool_()}.get(dtype) or getattr(pa, dtype)()


def file_name(writer: str, number: int) -> str:
    """Returns the name of a part among those of its table."""
    return f"part-{writer}-{number:05d}.parquet"


def ordered(files: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Returns the files of a table in an order that does not depend on who was first.

    Joined files are older than others.
    """
    return dict(sorted(files.items(), key=lambda item: (not _is_joined(item[0]), item)))


def _is_joined(file: str) -> bool:
    return file.split("-")[1] == JOINED


def write(
    disk: Disk, path: Path, table: "pa.Table", *, durable: bool = False
) -> list[int]:
    """Writes one part, renamed into place when it is finished.

    Args:
        disk: Disk of the study.
        path: Path of the part, in the folder of its table.
        table: Rows of the part.
        durable: Whether it must survive a loss of power. A part that was lost is seen
            to be missing, and its runs are repeated.

    Returns:
        Its bytes and CRC-32, which are checked when it is read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    words: Any = [f.name for f in table.schema if pa.types.is_dictionary(f.type)]
    pq.write_table(
        table,
        sink,
        compression="zstd",
        use_dictionary=words,
        column_encoding=_encodings(table.schema),
        write_page_checksum=True,
    )
    data = sink.getvalue().to_pybytes()
    with explained(path.parent.parent):
        disk.make(path.parent)
        replace(disk, path, data, durable=durable)
    return [len(data), zlib.crc32(data)]


def _encodings(schema: "pa.Schema") -> dict[str, str]:
    """Returns how the numbers of each column are written.

    Numbers of a trace are mostly times, which hardly repeat, and counts, which grow: a
    dictionary of them takes three times as long to write, to files twice as large.
    """
    import pyarrow as pa

    found = {}
    for field in schema:
        if pa.types.is_floating(field.type):
            found[field.name] = "BYTE_STREAM_SPLIT"
        elif pa.types.is_integer(field.type):
            found[field.name] = "DELTA_BINARY_PACKED"
    return found


def read(
    disk: Disk,
    path: Path,
    seal: Sequence[int] | None,
    filters: Filters | None = None,
    columns: list[str] | None = None,
) -> "pa.Table":
    """Returns the rows of a part.

    Args:
        disk: Disk of the study.
        path: Path of the part.
        seal: Bytes of the part, and its CRC-32; None where they are not noted yet.
        filters: Conditions on columns, as PyArrow has them; by default all rows.
        columns: Columns that are read; by default all.

    Raises:
        DamageError: it is missing or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        data = disk.read(path)
    except FileNotFoundError:
        raise _lost(path, "is missing") from None
    except OSError as error:
        raise _lost(path, f"cannot be read ({error.strerror or error})") from None
    if seal is not None and [len(data), zlib.crc32(data)] != list(seal):
        raise _lost(path, "is damaged (its checksum differs)")
    # Arrow's threads may let go of a buffer after the read. For Python's memory they
    # need the interpreter, and abort a program that is ending; so it is Arrow's own.
    own = pa.allocate_buffer(len(data))
    memoryview(own).cast("B")[:] = data  # pyright: ignore[reportArgumentType]
    return pq.read_table(
        pa.BufferReader(own),
        columns=columns,
        filters=filters,
        page_checksum_verification=True,
    )


def _lost(path: Path, why: str) -> DamageError:
    folder = path.parent.parent
    return DamageError(
        f"{path}: must be as it was written, but {why}; restore it from a copy, or "
        f"repeat the runs whose rows it held by stalesim resume {folder}"
    )


def compact(
    disk: Disk,
    folder: Path,
    files: Files,
    rows: Mapping[str, int],
    note: Callable[[Files], None],
) -> None:
    """Joins the parts of a finished study's tables, unless they are large enough.

    A joined file is complete before it is noted, and noted before the parts go.

    Args:
        disk: Disk of the study.
        folder: Folder of the study.
        files: Files of its tables; changed to the remaining ones.
        rows: Number of rows of each table.
        note: Called with the files that replace others, by table.
    """
    for name, mine in files.items():
        if len(mine) < 2 or rows.get(name, 0) >= ENOUGH * len(mine):
            continue
        paths = {folder / name / file: seal for file, seal in ordered(mine).items()}
        tables = [read(disk, path, seal) for path, seal in paths.items()]
        files[name] = rewrite(disk, folder, name, mine, tables, note)


def rewrite(
    disk: Disk,
    folder: Path,
    name: str,
    old: dict[str, list[int]],
    tables: "Iterable[pa.Table]",
    note: Callable[[Files], None],
) -> dict[str, list[int]]:
    """Replaces the files of a table by one that holds some rows.

    Returns:
        The file and its seal; nothing if there are no rows.
    """
    whole = joined(name, tables)
    path = folder / name / file_name(JOINED, _generation(old))
    new = {}
    if whole.num_rows:
        new = {path.name: write(disk, path, whole, durable=True)}
    note({name: new})
    with explained(folder):
        for file in old:
            disk.remove(folder / name / file)
    return new


def joined(name: str, tables: "Iterable[pa.Table]") -> "pa.Table":
    """Returns all rows of some tables of one name, in their order."""
    import pyarrow as pa

    unified = [table.unify_dictionaries() for table in tables]
    if not unified:
        types = {c: arrow_type(d.dtype) for c, d in COLUMNS[name].items()}
        return pa.schema(list(types.items())).empty_table()
    return pa.concat_tables(unified, promote_options="permissive").unify_dictionaries()


def _generation(files: Iterable[str]) -> int:
    """Returns a number for a joined file that no other of its table has had."""
    numbers = [
        int(file.removesuffix(".parquet").split("-")[2])
        for file in files
        if _is_joined(file)
    ]
    return 1 + max(numbers, default=-1)


def sync(disk: Disk, folder: Path, name: str, files: Iterable[str]) -> None:
    """Returns when files of a table survive a loss of power."""
    with explained(folder):
        for file in files:
            disk.sync(folder / name / file)
        disk.sync(folder / name)


def remove_parts(
    disk: Disk, folder: Path, but: Files, whose: Callable[[str], bool]
) -> None:
    """Removes parts of a study's tables that nothing names."""
    with explained(folder):
        for name in COLUMNS:
            for file in disk.names(folder / name):
                unnamed = file.startswith("part-") and file not in but.get(name, {})
                if unnamed and whose(file.split("-")[1]):
                    disk.remove(folder / name / file)
