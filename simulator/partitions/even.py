"""Equal shares of the rows: random ones, or successive ones, as a part of a text."""

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
        """
        refuse_too_many(self, dataset)
        order = shuffled(dataset, seed)
        return [np.sort(share) for share in np.array_split(order, self.clients)]


class Contiguous(Horizontal):
    """Every client holds successive rows: of a text, a part of its own.

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
