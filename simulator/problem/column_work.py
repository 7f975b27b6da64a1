"""The work of a batch by a column of the data, such as the length of a sequence."""

import hashlib

import numpy as np
from jaxtyping import Float, Int

from ..files.timeline import NO_SAMPLE
from ..parts.errors import ScenarioError
from .column import index_of
from .data.base import Dataset
from .sampler import Sampler

KEY = "clients.compute_by"


class ColumnWork:
    """The mean of a column over the rows that a job has drawn.

    Args:
        values: The column, for each training row; > 0.
        sampler: The minibatches.
        pools: Row ids of each client.
    """

    def __init__(
        self,
        values: Float[np.ndarray, " N"],
        sampler: Sampler,
        pools: list[Int[np.ndarray, " _"]],
    ) -> None:
        self._values, self._sampler, self._pools = values, sampler, pools

    @property
    def digest(self) -> str:
        """Hash of the column, the clients' rows, and how batches are drawn."""
        found = hashlib.sha256(self._values.tobytes())
        found.update(repr(self._sampler.facts).encode())
        for pool in self._pools:
            found.update(np.ascontiguousarray(pool, np.int64).tobytes() + b"|")
        return found.hexdigest()[:16]

    def of(self, client: int, job: int) -> float:
        """Returns the mean of one job's rows."""
        rows = self._sampler.batch(client, job)
        return float(self._values[rows[rows != NO_SAMPLE]].mean())


def column_work(
    column: int | str,
    data: Dataset,
    sampler: Sampler,
    pools: list[Int[np.ndarray, " _"]],
) -> ColumnWork:
    """Returns the work of jobs by a column of the data.

    Args:
        column: Its name, or its number from 0.
        data: The data set.
        sampler: The minibatches.
        pools: Row ids of each client.

    Raises:
        ScenarioError: The column is unknown or not positive, or a row of the timeline
            has one batch for all of its clients.
    """
    if sampler.common:
        raise ScenarioError(
            f"{KEY} must be left out where the clients of a commit share one batch, "
            f"got {column!r}; take samples: own"
        )
    index = index_of(data, column, KEY)
    values = np.asarray(data.x_train[:, index], np.float64)
    if not (np.isfinite(values).all() and values.min() > 0):
        raise ScenarioError(
            f"{KEY} must be a column of numbers > 0, got {values.min():g} in column "
            f"{data.columns[index]!r} of {data.name}; take another column, or "
            f"problem.data.scale: raw"
        )
    return ColumnWork(values, sampler, pools)
