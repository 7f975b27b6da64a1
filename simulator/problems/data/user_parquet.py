"""The user's own table, in a Parquet file."""

from typing import Literal

from simulator.config.base import FilePath
from simulator.problems.data.tables import TableSet, Tabular
from simulator.storage import arrow, files


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
