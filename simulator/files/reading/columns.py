"""Columns of a table in any kind of file: text or Parquet."""

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from ...parts.errors import DataError
from . import files, pictures, table

if TYPE_CHECKING:
    import pyarrow as pa

Values = Shaped[np.ndarray, " _"] | list[str]
"""Names of classes or of groups, one per row: numbers, or texts of any length."""


class Columns(ABC):
    """The columns of a table by their names, read as numbers or as words.

    Attributes:
        path: Path of the file, or of the folder.
        names: Names of the columns, all different.
    """

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        self.path = path
        self.names = names

    @abstractmethod
    def numbers(self, name: str) -> Shaped[np.ndarray, " N *s"]:
        """Returns a column of numbers, of lists of numbers, or of pictures.

        Raises:
            DataError: A cell holds something else, or nothing; or cells differ in
                shape.
        """

    def several(self, names: Sequence[str]) -> dict[str, Shaped[np.ndarray, "..."]]:
        """Returns columns of numbers by their names, as `numbers` has each."""
        return {name: self.numbers(name) for name in names}

    @abstractmethod
    def values(self, name: str, what: str) -> Values:
        """Returns a column of names: numbers if all of them are, else text.

        Args:
            name: Name of the column.
            what: Content of a cell, for the message where one is empty.

        Raises:
            DataError: A cell is empty, or holds no number and no text.
        """


class TextColumns(Columns):
    """The columns of comma-separated text in UTF-8, gzipped or not; no empty lines.

    Args:
        path: Path of the file.
        header: Number of rows before the one that holds the names of the columns.

    Attributes:
        rows: Cells of each row.
        lines: Line of the file on which each row ends, from 1.

    Raises:
        DataError: no text, no rows, a column named twice, or rows of unequal length.
    """

    def __init__(self, path: Path, header: int = 0) -> None:
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
                f"{path} must be comma-separated text in UTF-8, got: {error}; check "
                "its quotes and its encoding"
            ) from error
        if len(numbered) < header + 2:
            raise DataError(
                f"{path} must hold {header + 1} header rows and at least one row of "
                f"data, got {len(numbered)} rows; check that it is whole"
            )
        super().__init__(path, tuple(name.strip() for name in numbered[header][0]))
        table.refuse_repeated(path, self.names)
        self.rows, self.lines = map(list, zip(*numbered[header + 1 :], strict=True))
        for row, line in zip(self.rows, self.lines, strict=True):
            if len(row) != len(self.names):
                raise DataError(
                    f"{path} must have {len(self.names)} cells in every row, got "
                    f"{len(row)} in line {line}; check that it is whole"
                )

    def texts(self, name: str) -> list[str]:
        """Returns the cells of a column, stripped of blanks."""
        index = self.names.index(name)
        return [row[index].strip() for row in self.rows]

    def numbers(self, name: str) -> Shaped[np.ndarray, " N *s"]:
        return self.matrix((name,))[:, 0]

    def several(self, names: Sequence[str]) -> dict[str, Shaped[np.ndarray, "..."]]:
        return dict(zip(names, self.matrix(names).T, strict=True))

    def matrix(self, names: Sequence[str]) -> Float64[np.ndarray, "N P"]:
        """Returns columns of finite numbers, side by side.

        Raises:
            DataError: a cell that is no finite number, with its column and line.
        """
        place = {name: index for index, name in enumerate(self.names)}
        indices = [place[name] for name in names]
        cells = [[row[index] for index in indices] for row in self.rows]
        try:
            values = np.array(cells, dtype=np.float64)
        except ValueError:
            values = np.array([[table.number(cell) for cell in row] for row in cells])
        bad = np.argwhere(~table.representable(values))
        if bad.size:
            row, index = bad[0]
            raise DataError(
                f"column {names[index]!r} of {self.path} must hold finite numbers, got "
                f"{cells[row][index]!r} in line {self.lines[row]}; fill, encode or "
                "remove it"
            )
        return values

    def values(self, name: str, what: str) -> Values:
        """Returns a column as numbers if all cells are finite ones, else as text."""
        texts = self.texts(name)
        if "" in texts:
            line = self.lines[texts.index("")]
            raise _empty(self.path, name, what, f"line {line}")
        found = np.array([table.number(text) for text in texts])
        return found if np.isfinite(found).all() else texts


class ArrowColumns(Columns):
    """The columns of an Arrow table.

    Raises:
        DataError: Two columns have the same name, or there are no rows.
    """

    def __init__(self, path: Path, cells: "pa.Table") -> None:
        super().__init__(path, tuple(cells.column_names))
        table.refuse_repeated(path, self.names)
        if not cells.num_rows:
            raise DataError(f"{path} must hold rows, got none; write it again")
        self._cells = cells

    def numbers(self, name: str) -> Shaped[np.ndarray, " N *s"]:
        cells = self._in_one(name)
        if pictures.is_packed(cells.type):
            return pictures.unpacked(cells, f"column {name!r} of {self.path}")
        found = self._unfolded(name, cells)
        bad = np.argwhere(~table.representable(found))
        if bad.size:
            raise DataError(
                f"column {name!r} of {self.path} must hold finite numbers, got "
                f"{found[tuple(bad[0])]} in row {bad[0][0] + 1}; fill or remove it"
            )
        return found

    def values(self, name: str, what: str) -> Values:
        """Returns a column of numbers or of text; dates and the like as text."""
        from pyarrow import types

        cells = self._in_one(name)
        words = cells.dictionary if types.is_dictionary(cells.type) else cells
        if types.is_nested(words.type) or types.is_binary(words.type):
            raise DataError(
                f"column {name!r} of {self.path} must hold {what} in every row, got "
                f"{words.type}; take another column"
            )
        if _is_number(words.type):
            empty = cells.is_null(nan_is_null=True)
            self._refuse_empty(name, what, empty.to_numpy(zero_copy_only=False))
            return cells.to_numpy(zero_copy_only=False)
        known = words.cast("string").to_pylist()
        if types.is_dictionary(cells.type):
            known = [None if i is None else known[i] for i in cells.indices.to_pylist()]
        self._refuse_empty(name, what, np.array([not text for text in known]))
        return [str(text) for text in known]

    def _in_one(self, name: str) -> "pa.Array":
        """Returns a column in one piece, without extensions, decimals as floats."""
        import pyarrow as pa
        from pyarrow import types

        cells = self._cells[name].combine_chunks()
        if isinstance(cells, pa.ChunkedArray):  # where one piece holds no more text
            cells = pa.concat_arrays(cells.chunks)
        if isinstance(cells, pa.ExtensionArray):
            cells = cells.storage
        if types.is_dictionary(cells.type) and _is_number(cells.type.value_type):
            cells = cells.dictionary_decode()
        return cells.cast("float64") if types.is_decimal(cells.type) else cells

    def _unfolded(self, name: str, cells: "pa.Array") -> Shaped[np.ndarray, " N *s"]:
        """Returns the numbers of nested lists as an array, level by level."""
        from pyarrow import compute, types

        shape = [len(cells)]
        while True:
            each = len(cells) // shape[0]  # of a row, at this level
            empty = cells.is_null().to_numpy(zero_copy_only=False)
            self._refuse_empty(name, "a number", empty, each)
            if not _is_list(cells.type):
                break
            lengths = compute.call_function("list_value_length", [cells])
            lengths = lengths.to_numpy(zero_copy_only=False)
            odd = np.flatnonzero(lengths != lengths[0])
            if odd.size:
                raise DataError(
                    f"column {name!r} of {self.path} must hold lists of one length, "
                    f"got {lengths[0]} in row 1 and {lengths[odd[0]]} in row "
                    f"{odd[0] // each + 1}; pad or cut them"
                )
            self._refuse_empty(name, "a number", lengths[:1] == 0)
            shape.append(int(lengths[0]))
            cells = cells.flatten()
        if not _is_number(cells.type):
            raise DataError(
                f"column {name!r} of {self.path} must hold numbers, got {cells.type}; "
                "encode or remove it"
            )
        if types.is_boolean(cells.type):
            cells = cells.cast("uint8")
        return cells.to_numpy(zero_copy_only=False).reshape(shape)

    def _refuse_empty(
        self, name: str, what: str, empty: Bool[np.ndarray, " n"], each: int = 1
    ) -> None:
        if empty.any():
            row = int(empty.argmax()) // each + 1
            raise _empty(self.path, name, what, f"row {row}")


def _is_list(kind: "pa.DataType") -> bool:
    from pyarrow import types

    return any(
        known(kind)
        for known in (types.is_list, types.is_large_list, types.is_fixed_size_list)
    )


def _is_number(kind: "pa.DataType") -> bool:
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def _empty(path: Path, name: str, what: str, where: str) -> DataError:
    return DataError(
        f"column {name!r} of {path} must hold {what} in every row, got none in "
        f"{where}; fill or remove it"
    )


PIECE = 4096
"""Rows of a Parquet file that are read at a time."""


def parquet(path: Path, columns: Sequence[str] | None = None) -> ArrowColumns:
    """Returns the columns of a Parquet file.

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
                files.check(size := size + piece.nbytes, packed)
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
