"""The user's own table, in a Parquet file."""

from typing import Literal

from ..config.base import FilePath
from ..storage import arrow, files
from .tables import TableSet, Tabular


class Parquet(Tabular):
    """The user's own table in Parquet: numbers, lists of them, or pictures."""

    kind: Literal["parquet"] = "parquet"
    path: FilePath
    """File with the rows."""

    def tables(self) -> TableSet:
        """Reads the table.

        Raises:
            DataError: The file does not exist, or is damaged.
        """
        path = files.located(self.path, "problem.data.path")
        return TableSet(path.stem, arrow.parquet(path))
