"""Shares of the rows: random ones, equal or of given sizes, or successive ones."""

from typing import Literal

import numpy as np
from pydantic import model_validator

from ...parts.base import LocatedError
from ...parts.errors import ScenarioError
from ...parts.expressions import Quantity, per_client
from ...problem.data.base import Dataset
from ...problem.partition import Horizontal, Shares, refuse_too_many, shuffled


class Iid(Horizontal):
    """Every client holds an equal, random share of the samples."""

    kind: Literal["iid"] = "iid"

    def make(self, dataset: Dataset, seed: int) -> Shares:
        """Returns disjoint random shares of all training rows.

        Sizes differ by at most one; the first clients hold the larger shares.
        """
        refuse_too_many(self, dataset)
        order = shuffled(dataset, seed)
        return [np.sort(share) for share in np.array_split(order, self.clients)]


class Contiguous(Horizontal):
    """Every client holds successive rows: of a text, one part.

    Rows of a text are in its order. Those of other sets are shuffled, so that their
    successive rows are a random share.
    """

    kind: Literal["contiguous"] = "contiguous"

    @property
    def by_number(self) -> bool:
        return True

    def make(self, dataset: Dataset, seed: int) -> Shares:
        """Returns groups of successive training rows; nothing is random.

        Sizes differ by at most one; the first clients hold the larger groups.
        """
        refuse_too_many(self, dataset)
        return np.array_split(np.arange(len(dataset.y_train)), self.clients)


class Sizes(Horizontal):
    """Every client holds a random share of the samples, in proportion to its weight."""

    kind: Literal["sizes"] = "sizes"
    weights: Quantity
    """Positive, up to a common factor: one number per client, or an expression."""

    @model_validator(mode="after")
    def _weighed(self) -> "Sizes":
        if not isinstance(self.weights, tuple):
            return self
        if len(self.weights) != self.clients:
            raise LocatedError(
                f"weights must have one entry per client ({self.clients}), got "
                f"{len(self.weights)}; make it as long, or use an expression in m and "
                "M",
            )
        return self

    @property
    def by_number(self) -> bool:
        return len({*per_client(self.weights, self.clients, "weights")}) > 1

    def make(self, dataset: Dataset, seed: int) -> Shares:
        """Returns random shares of all rows, of sizes in proportion to the weights.

        Sizes are the proportions rounded down; the rows that are left go to the clients
        with the largest remainders, among equal ones to the first.
        """
        refuse_too_many(self, dataset)
        key = "problem.partition.weights"
        values = per_client(self.weights, self.clients, key)
        for client, value in enumerate(values):
            if not value > 0:
                raise ScenarioError(
                    f"{key} must be > 0 for every client, got {float(value):g} for "
                    f"client {client + 1}; raise it, or take fewer clients"
                )
        largest, num_rows = max(values), len(dataset.y_train)
        weights = np.array([float(value / largest) for value in values])
        quota = weights / weights.sum() * num_rows
        size = np.floor(quota).astype(np.int64)
        left = num_rows - size.sum()
        size[np.argsort(size - quota, kind="stable")[:left]] += 1
        if not size.all():
            client = int(size.argmin())
            raise ScenarioError(
                f"{key} must give every client one of the {num_rows} training rows of "
                f"{dataset.name}, got a share of {quota[client]:.2g} rows for client "
                f"{client + 1}; raise it, or take fewer clients"
            )
        order = shuffled(dataset, seed)
        return [np.sort(share) for share in np.split(order, np.cumsum(size)[:-1])]
