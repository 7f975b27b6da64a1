"""Rows that belong together: a writer's, a user's, a speaker's, a hospital's."""

import heapq
from typing import Literal

import numpy as np
from jaxtyping import Int

from ...parts.errors import ScenarioError, suggestion
from ...problem.data.base import Dataset, Grouping
from ...problem.partition import Horizontal, Shares, grouped

MOST_NAMED = 3
"""Values of a client that its label names."""


class Natural(Horizontal):
    """Rows with one value of a column, such as a writer's name, belong to one client.

    The data set defines the columns: `groups` of a table, `group` of arrays. As many
    clients as values have a value each, in the order of the values. With fewer clients,
    each value goes undivided to one client: the one with the most rows first, each to
    the client with the fewest rows so far.
    """

    kind: Literal["natural"] = "natural"
    column: str | None = None
    """Name of the column; by default the only one that divides the data."""

    @property
    def by_number(self) -> bool:
        return True

    def make(self, dataset: Dataset, seed: int) -> Shares:
        grouping = self._grouping(dataset)
        return grouped(
            np.arange(len(grouping.of_row)),
            self._clients(grouping, dataset.name)[grouping.of_row],
            self.clients,
        )

    def labels(self, dataset: Dataset) -> tuple[str, ...]:
        """Returns the column and the first values that each client holds: `user 7`."""
        grouping = self._grouping(dataset)
        held: list[list[str]] = [[] for _ in range(self.clients)]
        clients = self._clients(grouping, dataset.name)
        for value, client in zip(grouping.values, clients, strict=True):
            held[client].append(value)
        return tuple(f"{grouping.column} {_told(values)}" for values in held)

    def _grouping(self, dataset: Dataset) -> Grouping:
        known = {grouping.column: grouping for grouping in dataset.groupings}
        if not known:
            raise ScenarioError(
                f"problem.partition.kind must not be 'natural' for {dataset.name}, "
                "which no column divides; name one in problem.data.groups of a table, "
                "or add an array group"
            )
        if self.column is None and len(known) > 1:
            raise ScenarioError(
                f"problem.partition.column is missing; {dataset.name} is divided by "
                f"{', '.join(known)}, so name one of them"
            )
        column = self.column or next(iter(known))
        if column not in known:
            raise ScenarioError(
                f"problem.partition.column must divide {dataset.name}, got {column!r}; "
                f"{suggestion(column, known)}"
            )
        return known[column]

    def _clients(self, grouping: Grouping, name: str) -> Int[np.ndarray, " G"]:
        """Returns the client that holds each value.

        Clients are numbered in the order of the first value that they hold.
        """
        sizes = np.bincount(grouping.of_row, minlength=len(grouping.values))
        if sizes.size < self.clients:
            raise ScenarioError(
                f"problem.partition.clients must be at most the {sizes.size} values of "
                f"{grouping.column!r} in the training rows of {name}, got "
                f"{self.clients}; take {sizes.size} for one each"
            )
        rows = [(0, client) for client in range(self.clients)]
        holder = np.empty(sizes.size, np.int64)
        for value in np.argsort(-sizes, kind="stable"):
            held, client = heapq.heappop(rows)
            holder[value] = client
            heapq.heappush(rows, (held + int(sizes[value]), client))
        _, first = np.unique(holder, return_index=True)
        number = np.empty(self.clients, np.int64)
        number[np.argsort(first)] = np.arange(self.clients)
        return number[holder]


def _told(values: list[str]) -> str:
    left = len(values) - MOST_NAMED
    return ", ".join(values[:MOST_NAMED]) + (f" and {left} more" if left > 0 else "")
