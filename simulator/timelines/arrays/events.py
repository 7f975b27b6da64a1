"""What happens to clients, in the order in which an event loop would have it."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, Shaped

from .job_arrays import JobArrays
from .registers import LATER
from .ties import in_order

ASK, READ, END = range(3)
"""Kinds of a client's events."""
START = -1
"""Position before all events."""


class Events(NamedTuple):
    """What happens in a block, in order; places are among the jobs that are known.

    Attributes:
        time: Times in the clock's unit.
        job: Place of the job that each belongs to.
        kind: What happens to it.
        read_at: Place of the event in which each job reads; `START` for first jobs that
            read at once, `LATER` for those that do not read in this block.
    """

    time: Shaped[np.ndarray, " E"]
    job: Int[np.ndarray, " E"]
    kind: Int[np.ndarray, " E"]
    read_at: Int[np.ndarray, " J"]


class EventOrder:
    """The order of all events of a run, block after block.

    Args:
        num_clients: Number of clients, which are started in their order.
    """

    def __init__(self, num_clients: int) -> None:
        self._last_event = np.arange(-num_clients, 0)
        self._num_events = 0

    def until(self, work: JobArrays, since: Any, until: Any) -> Events:
        """Returns what happens after one time and until another, in order.

        Args:
            work: All jobs that had not ended at the first time, among them one of each
                client that has not ended at the second.
            since: Time in the clock's unit, up to which everything was in order before.
            until: Time in the clock's unit.
        """
        J, own = work.client.size, work.own
        time, job, kind = self.happened(work, since, until)
        read_at = np.full(J, LATER)
        # A job whose read is no event of its own reads when the one before it ends.
        before = np.flatnonzero(kind == END)
        following = job[before] + 1
        if own is None:
            read_at[following] = before
            read_at[work.job == 0] = START
        else:
            reads = kind == READ
            read_at[job[reads]] = np.flatnonzero(reads)
            at_once = ~own[following]
            read_at[following[at_once]] = before[at_once]
            read_at[(work.job == 0) & ~own] = START
        return Events(time, job, kind, read_at)

    def happened(
        self, work: JobArrays, since: Any, until: Any
    ) -> tuple[np.ndarray, Int[np.ndarray, " E"], Int[np.ndarray, " E"]]:
        """Returns times, jobs and kinds of what happens after one time until another.

        Args:
            work: All jobs that had not ended at the first time.
            since: as in `until`.
            until: as in `until`.
        """
        J, own = work.client.size, work.own
        if own is None:
            job = np.flatnonzero(work.end <= until)
            kind = np.full(job.size, END)
            time = work.end[job]
        else:
            happens = np.zeros((J, 3), bool)
            happens[:, END] = work.end <= until
            after = work.read > since
            happens[:, READ] = own & after & (work.read <= until)
            times = [work.read, work.read, work.end]
            if work.asked is not None:
                both = work.asks & (work.asked > since)
                happens[:, ASK] = both & (work.asked <= until)
                times[ASK] = work.asked
            job, kind = np.nonzero(happens)
            time = np.stack(times, axis=1)[job, kind]
        client = work.client[job]
        order = in_order(time, client, self._last_event)
        job, kind, client = job[order], kind[order], client[order]
        self._last_event[client] = self._num_events + np.arange(order.size)
        self._num_events += order.size
        return time[order], job, kind
