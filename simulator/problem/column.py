"""Groups of rows that are successive in the order of a feature."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from ..parts.base import Rule
from ..parts.errors import ScenarioError
from .data.base import Dataset, hint
from .partition import Horizontal, Shares, grouped


class ByColumn(Horizontal):
    """Samples are sorted by a feature and cut into groups, one for each client.

    Samples with the same value of the feature, such as a user's number, are never
    separated.
    """

    kind: Literal["column"] = "column"
    column: Annotated[
        Annotated[int, Field(ge=0)] | str,
        Rule("the name or the number of a column, from 0", "age"),
    ]
    """Name or number of the column by which rows are divided."""

    @property
    def by_number(self) -> bool:
        return True

    def make(self, dataset: Dataset, seed: int) -> Shares:
        """Returns groups of rows that are successive in the order of the feature.

        Rows with equal values are in one group. Each border is between two values, as
        near as possible to the border of groups of equal size. Nothing is random.
        """
        index = self._index(dataset)
        _, value, counts = np.unique(
            dataset.x_train[:, index], return_inverse=True, return_counts=True
        )
        num_values, num_clients = counts.size, self.clients
        if num_values < num_clients:
            raise ScenarioError(
                f"problem.partition.clients must be at most the {num_values} values of "
                f"column {dataset.columns[index]!r} of {dataset.name}, got "
                f"{num_clients}; take fewer clients, or another column"
            )
        ends = np.cumsum(counts)
        ideal = np.arange(1, num_clients) * (ends[-1] / num_clients)
        after = np.searchsorted(ends, ideal)
        before = np.maximum(after - 1, 0)
        nearer = ideal - ends[before] <= ends[after] - ideal
        last = np.where(nearer, before, after)
        # Every group keeps a value of its own: borders rise, and leave enough behind
        # them.
        group = np.arange(num_clients - 1)
        last = np.maximum.accumulate(np.maximum(last - group, 0)) + group
        last = np.minimum(last, num_values - num_clients + group)
        client = np.searchsorted(last, value)
        return grouped(np.arange(len(value)), client, num_clients)

    def _index(self, dataset: Dataset) -> int:
        column, key = self.column, "problem.partition.column"
        if isinstance(column, str):
            if column in dataset.columns:
                return dataset.columns.index(column)
            raise ScenarioError(
                f"{key} must be a column of {dataset.name}, got {column!r}; "
                f"{hint(column, dataset.columns)}"
            )
        if column >= len(dataset.columns):
            raise ScenarioError(
                f"{key} must be at most {len(dataset.columns) - 1}, the last column of "
                f"{dataset.name}, got {column}; lower it"
            )
        return column
