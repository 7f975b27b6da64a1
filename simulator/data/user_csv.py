"""The user's own table, in a csv file."""

from typing import Literal

from ..config.base import FilePath
from ..storage import files
from ..storage.columns import TextColumns
from .tables import TableSet, Tabular


class Csv(Tabular):
    """The user's own table of text: one row a sample, one column the label."""

    kind: Literal["csv"] = "csv"
    path: FilePath
    """File with the rows."""

    def tables(self) -> TableSet:
        """Reads the table.

        Raises:
            DataError: The file does not exist, or is no table.
        """
        path = files.located(self.path, "problem.data.path")
        return TableSet(path.stem, TextColumns(path))
