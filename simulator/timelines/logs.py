"""Logs of real systems: CSV, JSON Lines or Parquet tables, refused in one line."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from jaxtyping import Float64

from ..files.reading import files, table
from ..parts import json_text
from ..parts.errors import DataError, shown, suggestion

if TYPE_CHECKING:
    import pandas as pd

LATEST = 1e11
"""Seconds since 1970 until the year 5138: later times are of a smaller unit."""
SUFFIXES = (".csv", ".jsonl", ".parquet")


class LogTable:
    """The rows of a log as they were written, and the refusal of one of them.

    Raises:
        DataError: there is no such file, or it is no table.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.frame = path, _read(path)

    def check_columns(
        self,
        needed: Sequence[str],
        optional: Sequence[str],
        row: str,
        remedy: str = "add or rename it",
    ) -> None:
        """Refuses missing and unknown columns, and a log without rows."""
        path, frame = self.path, self.frame
        known = (*needed, *optional)
        for name in needed:
            if name not in frame:
                raise DataError(
                    f"{path}: must have the column {name}, but has "
                    f"{', '.join(map(str, frame.columns))}; {remedy}"
                )
        for name in frame.columns:
            if name not in known:
                raise DataError(
                    f"{path}: column {name!r} must be renamed or removed, because it "
                    f"is not a known one; {suggestion(name, known)}"
                )
        if frame.empty:
            raise DataError(
                f"{path}: must have a row per {row}, but has none; add some"
            )

    def numbers(self, name: str) -> Float64[np.ndarray, " n"]:
        """Returns a column as numbers, NaN where there is none."""
        import pandas as pd

        try:
            found = pd.to_numeric(self.frame[name], errors="coerce")
        except OverflowError:
            raise DataError(
                f"{self.path}: column {name} must have numbers of at most 64 bits, got "
                f"a longer one; correct it"
            ) from None
        return found.astype(np.float64).to_numpy(na_value=np.nan)

    def seconds(self, name: str) -> Float64[np.ndarray, " n"]:
        """Returns a column of times in seconds, NaN where there is none.

        Dates by ISO 8601, with a zone each or none at all, are seconds since 1970;
        without a zone a change of the clocks is not known.
        """
        import pandas as pd

        column = self.frame[name]
        if not pd.api.types.is_datetime64_any_dtype(column):
            found = self.numbers(name)
            if pd.api.types.is_numeric_dtype(column) or np.isfinite(found).any():
                return found
        dates = pd.to_datetime(column, format="ISO8601", utc=True, errors="coerce")
        zoned = column.astype("string").str.contains(r":.*(?:Z|[+-]\d\d:?\d\d)$")
        bare = (dates.notna() & ~zoned.fillna(False)).to_numpy(bool)
        if not bare.all():
            what = f"must have a zone in {name}, as other rows have"
            self.refuse(bare, what, name, "add it, for example Z or +02:00")
        since = dates - pd.Timestamp(0, tz="UTC")
        return since.dt.total_seconds().to_numpy(np.float64)

    def refuse(self, wrong: object, what: str, name: str, remedy: str) -> None:
        """Refuses the first wrong row, with its value in a column.

        Raises:
            DataError: some row is wrong.
        """
        wrong = np.asarray(wrong, bool)
        if wrong.any():
            row = int(wrong.argmax())
            value = self.frame[name].iloc[row]
            if isinstance(value, np.generic | np.ndarray):
                value = value.tolist()
            empty = value is None or value != value  # NaN
            got = "an empty cell" if empty else shown(value)
            self.refuse_row(row, f"{what}, got {got}", remedy)

    def number(self, row: int) -> int:
        """Returns a row's number as an editor shows it: of a CSV file, its line."""
        first = 2 if self.path.suffix == ".csv" else 1
        return int(self.frame.index[row]) + first  # of rows that are left, too

    def refuse_units(self, seconds: Float64[np.ndarray, " n"], name: str) -> None:
        """Refuses times that are no seconds."""
        what = f"must have {name} in seconds, at most {LATEST:g}"
        remedy = "divide all times by 1000, 1e6 or 1e9"
        self.refuse(np.abs(seconds) > LATEST, what, name, remedy)

    def refuse_row(self, row: int, what: str, remedy: str) -> NoReturn:
        """Refuses a row."""
        where = "row" if self.path.suffix == ".parquet" else "line"
        raise DataError(f"{self.path}: {where} {self.number(row)}: {what}; {remedy}")


def _read(path: Path) -> "pd.DataFrame":
    import pandas as pd

    if path.suffix not in SUFFIXES:
        raise DataError(
            f"{path}: must end in .csv, .jsonl or .parquet; convert or rename it"
        )
    try:
        _check_size(path)
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        if path.suffix == ".jsonl":
            return pd.DataFrame(list(_objects(path)))
        return pd.read_csv(path, skipinitialspace=True, skip_blank_lines=False)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file; check the path") from None
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise DataError(f"{path}: must be a readable table, but {why}") from None


def _objects(path: Path) -> Iterator[dict[str, object]]:
    """Yields the objects of a file of JSON lines, as they are written."""
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            try:
                found = json_text.loads(line.encode())
            except ValueError as error:
                raise ValueError(f"line {number} {error}") from None
            if not isinstance(found, dict):
                raise ValueError(f"line {number} is no JSON object")
            yield found


def _check_size(path: Path) -> None:
    """Refuses a log that would take too much memory."""
    from pyarrow import parquet

    size = path.stat().st_size
    if path.suffix == ".parquet":
        with parquet.ParquetFile(path) as file:
            table.check_parquet(file, file.schema_arrow.names, size)
    elif size > files.MOST_TEXT:
        most = files.shown(files.MOST_TEXT)
        raise ValueError(f"it has {files.shown(size)}, where {most} are allowed")
