"""The user's own table, in a csv file."""

from typing import Literal

import numpy as np
from jaxtyping import Int32

from simulator.config.base import FilePath
from simulator.config.errors import DataError
from simulator.problems.data import names
from simulator.problems.data.base import Dataset
from simulator.problems.data.parts import Data
from simulator.problems.data.split import divided
from simulator.storage import files, table


class Csv(Data):
    """The user's own table: one row a sample, one column the label."""

    kind: Literal["csv"] = "csv"
    path: FilePath
    label: str
    """Name of the label's column; labels are numbered in sorted order."""

    def make(self) -> Dataset:
        """Returns the user's table: every column but the label is a feature.

        Labels are numbered in sorted order: by value if all of them are numbers, else
        by their text.

        Raises:
            DataError: The file or the label does not exist, or a feature is no finite
                number.
            ScenarioError: The limit or the test fraction is too high.
        """
        path = files.located(self.path, "problem.data.path")
        cells = table.read(path)
        if self.label not in cells.columns:
            raise DataError(
                f"problem.data.label must be a column of {path}, got {self.label!r}; "
                f"{names.hint(self.label, cells.columns)}"
            )
        columns = tuple(name for name in cells.columns if name != self.label)
        if not columns:
            raise DataError(
                f"{path} must have a column besides the label {self.label!r}, got "
                "none; add features"
            )
        y, num_classes = _classes(cells, self.label)
        x = table.numbers(cells, columns)
        return divided(
            self, path.stem, (x, y), num_classes=num_classes, columns=columns
        )


def _classes(cells: table.Table, label: str) -> tuple[Int32[np.ndarray, " N"], int]:
    """Returns the numbered labels of a table, and the number of classes."""
    texts = table.column(cells, label)
    if "" in texts:
        raise DataError(
            f"column {label!r} of {cells.path} must hold a label in every row, got "
            f"none in line {cells.lines[texts.index('')]}; fill or remove it"
        )
    values = np.array([table.number(text) for text in texts])
    if not np.isfinite(values).all():
        values = np.array(texts)
    classes, numbers = np.unique(values, return_inverse=True)
    if classes.size < 2:
        raise DataError(
            f"column {label!r} of {cells.path} must hold two classes or more, got only "
            f"{texts[0]!r}; check problem.data.label"
        )
    return numbers.astype(np.int32), classes.size
