"""A division that was published as a file: ids of training rows by client."""

from typing import Literal

import numpy as np

from ...files.reading import files
from ...parts import json_text
from ...parts.base import FilePath
from ...parts.errors import DataError, ScenarioError
from ...problem.data.base import Dataset
from ...problem.partition import Horizontal, Shares


class ListedRows(Horizontal):
    """Clients hold the training rows that a JSON file lists, as papers publish them.

    The file has a list of row numbers, from 0 in the order of the training set, for
    each client: `[[0, 5], [1, 2]]`, or `{"0": [0, 5], "1": [1, 2]}` with clients in the
    order of the file (`net_dataidx_map` of NIID-Bench, `client_dict` of FedLab).
    """

    kind: Literal["listed"] = "listed"
    path: FilePath
    """The JSON file."""

    @property
    def by_number(self) -> bool:
        return True

    def make(self, dataset: Dataset, seed: int) -> Shares:
        path = files.located(self.path, "problem.partition.path")
        try:
            given = json_text.loads(path.read_bytes())
            lists = [*given.values()] if isinstance(given, dict) else given
            shares = [np.sort(np.asarray(rows)) for rows in lists]
        except (OSError, TypeError, ValueError) as error:
            raise DataError(f"{path}: {error or 'is no list'}; correct it") from None
        if any(
            rows.ndim != 1 or rows.dtype.kind != "i" or not rows.size for rows in shares
        ):
            raise DataError(
                f"{path}: must have a list of row numbers for each client, such as "
                f"[[0, 5], [1, 2]]; correct it"
            )
        if len(shares) != self.clients:
            raise ScenarioError(
                f"problem.partition.clients must be {len(shares)}, the clients of "
                f"{path}, got {self.clients}; change it"
            )
        held, num_rows = np.sort(np.concatenate(shares)), len(dataset.y_train)
        if not np.array_equal(held, np.arange(num_rows)):
            raise DataError(
                f"{path}: must list each of the {num_rows} training rows of "
                f"{dataset.name} once, from 0 on, but lists {held.size} numbers from "
                f"{held[0]} to {held[-1]}; take the set that it was made for"
            )
        return shares
