"""The base of partitions by rows."""

from typing import ClassVar

import numpy as np
from jaxtyping import Int

from ..config.base import NumClients
from ..config.parts import Part
from ..data.base import Dataset

Columns = list[Int[np.ndarray, " _"]]
"""Indices of the columns of each party."""
Shares = list[Int[np.ndarray, " _"]]
"""Ids of the training rows of each client, ascending."""


class Horizontal(Part):
    """A division of the rows among clients, who hold all columns.

    Clients hold disjoint sets of rows, and together all of them.
    """

    family: ClassVar[str] = "horizontal"
    clients: NumClients
    """Number of clients."""

    @property
    def num_clients(self) -> int:
        """Number of clients."""
        return self.clients

    def make(self, dataset: Dataset, seed: int) -> Shares:
        """Returns the rows of each client.

        Args:
            dataset: Data set with the training rows to divide.
            seed: Seed of the run, >= 0.

        Raises:
            ScenarioError: The rows cannot be divided so.
        """
        return super().make(dataset, seed)

    def labels(self, dataset: Dataset) -> tuple[str, ...]:
        """Returns what clients are called, if the data say so; for tables.

        Args:
            dataset: Data set that was divided.
        """
        del dataset
        return ()
