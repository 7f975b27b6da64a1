"""Equal, random shares of the rows."""

from typing import Literal

import numpy as np

from ..data.base import Dataset
from .parts import Horizontal, Shares, refuse_too_many, shuffled


class Iid(Horizontal):
    """Every client holds an equal, random share of the samples."""

    kind: Literal["iid"] = "iid"

    def make(self, dataset: Dataset, seed: int) -> Shares:
        """Returns disjoint random shares of all training rows.

        Sizes differ by at most one; the first clients hold the larger shares.

        Args:
            dataset: Data set with the training rows to divide.
            seed: Seed of the run, >= 0.

        Raises:
            ScenarioError: There are more clients than rows.
        """
        refuse_too_many(self, dataset)
        order = shuffled(dataset, seed)
        return [np.sort(share) for share in np.array_split(order, self.clients)]
