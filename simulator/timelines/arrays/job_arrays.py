"""Jobs as arrays: a column for each thing that is known of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Shaped

NOT_READ = -1
"""`read_version` of a job that has not started."""


class JobArrays(NamedTuple):
    """Jobs, one client's after another's, each in order.

    Times are in the clock's unit. Columns that say nothing in a world are None.

    Attributes:
        client: Number of the client.
        job: Number of the job.
        read: Time of its read.
        end: Time of its arrival, or at which it came to nothing.
        read_version: Version that it has read, or `NOT_READ`.
        read_slot: Register of that version.
        own: Whether the read is an event of its own; None where none is.
        request: Time of an event before the read, at which it requests work.
        requests: Whether there is such an event.
        started: Time at which it began to compute; None where it does so at its read.
        computed: Time at which it had computed, and sent its message; None where it
            arrives at once.
        sends: Messages that it sends, repeats included; None where that is one.
        twice: Whether the last of them arrives twice.
        outcome: `APPLIED`, or why nothing comes of it, an `Outcome`; None where
            something always does.
    """

    client: Int[np.ndarray, " J"]
    job: Int[np.ndarray, " J"]
    read: Shaped[np.ndarray, " J"]
    end: Shaped[np.ndarray, " J"]
    read_version: Int[np.ndarray, " J"]
    read_slot: Int[np.ndarray, " J"]
    own: Bool[np.ndarray, " J"] | None = None
    request: Shaped[np.ndarray, " J"] | None = None
    requests: Bool[np.ndarray, " J"] | None = None
    started: Shaped[np.ndarray, " J"] | None = None
    computed: Shaped[np.ndarray, " J"] | None = None
    sends: Int[np.ndarray, " J"] | None = None
    twice: Bool[np.ndarray, " J"] | None = None
    outcome: Int[np.ndarray, " J"] | None = None

    def at(self, where: np.ndarray) -> "JobArrays":
        """Returns some of the jobs, by a mask or by places."""
        if where.dtype == bool:
            where = np.flatnonzero(where)
        columns: Any = (None if c is None else c.take(where) for c in self)
        return JobArrays(*columns)


def together(parts: Sequence[JobArrays]) -> JobArrays:
    """Returns the jobs of several pieces of one world."""
    columns: Any = (
        None if column[0] is None else np.concatenate(column)
        for column in zip(*parts, strict=True)
    )
    return JobArrays(*columns)
