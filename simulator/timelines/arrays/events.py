"""Events of clients, in the order of an event loop.

An event loop takes events of one instant in the order in which they were put into its
queue, which is the order of the events that put them there: their parents. So events
are in the order of their own times, then of their parents' times, then of those before
them, and so on; the first ones are in the order of their start.
"""

from bisect import bisect_right
from math import inf
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Shaped

from ...parts.expressions import up
from .job_arrays import LATER, JobArrays

ASK, READ, END = range(3)
"""Kinds of a client's events."""
START = -1
"""Position before all events."""


class Events(NamedTuple):
    """Events in a block, in order; places are among the known jobs.

    Attributes:
        time: Times in the clock's unit.
        job: Place of the job that each belongs to.
        kind: Kind of the event.
        read_at: Place of the event in which each job reads; `START` for first jobs that
            read at once, `LATER` for jobs that do not read in this block.
    """

    time: Shaped[np.ndarray, " E"]
    job: Int[np.ndarray, " E"]
    kind: Int[np.ndarray, " E"]
    read_at: Int[np.ndarray, " J"]


class EventOrder:
    """The order of all events of a run, block after block."""

    def __init__(self, num_clients: int) -> None:
        self._last_event = np.arange(-num_clients, 0)
        self._num_events = 0

    def until(self, work: JobArrays, since: float, until: float) -> Events:
        """Returns the events after one time and until another, in order.

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
        self, work: JobArrays, since: float, until: float
    ) -> tuple[np.ndarray, Int[np.ndarray, " E"], Int[np.ndarray, " E"]]:
        """Returns times, jobs and kinds of the events between two times."""
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
            if work.request is not None and work.requests is not None:
                both = work.requests & (work.request > since)
                happens[:, ASK] = both & (work.request <= until)
                times[ASK] = work.request
            job, kind = np.nonzero(happens)
            time = np.stack(times, axis=1)[job, kind]
        client = work.client[job]
        order = in_order(time, client, self._last_event)
        job, kind, client = job[order], kind[order], client[order]
        self._last_event[client] = self._num_events + np.arange(order.size)
        self._num_events += order.size
        return time[order], job, kind


def in_order(
    time: Shaped[np.ndarray, " n"],
    client: Int[np.ndarray, " n"],
    before: Int[np.ndarray, " K"],
) -> Int[np.ndarray, " n"]:
    """Returns the places of events, in the order in which an event loop takes them.

    Args:
        time: Times of the events, one client's after another's. The parent of each is
            the one before it of its client, which is no later.
        client: Their clients.
        before: Order of each client's last event before these, all different.
    """
    order = np.argsort(time)
    sorted_time = time[order]
    if not (sorted_time[1:] == sorted_time[:-1]).any():
        return order
    n = time.size
    # Earlier events stand behind the others here, and come before all of them.
    first = np.flatnonzero(np.concatenate([[True], client[1:] != client[:-1]]))
    ancestor = np.arange(-1, n + first.size - 1)
    ancestor[first] = ancestor[n:] = np.arange(n, n + first.size)
    rank = np.empty(n + first.size, np.int64)
    rank[n + np.argsort(before[client[first]])] = np.arange(first.size)
    tied, rank[order] = order, first.size + _starts(sorted_time)
    while True:
        tied = tied[_shared(rank[tied])]
        if not tied.size:
            order = np.empty(n, np.int64)
            order[rank[:n] - first.size] = np.arange(n)
            return order
        # Twice as many generations are compared in each pass.
        key = rank[tied] * rank.size + rank[ancestor[tied]]
        by = np.argsort(key)
        tied, key = tied[by], key[by]
        # The place of a rank's first event, and places among those of the same rank.
        old = rank[tied]
        rank[tied] = old + _starts(key) - _starts(old)
        ancestor = ancestor[ancestor]


def _starts(values: Shaped[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Returns, in a sorted array, the place of the first of each value's like."""
    place = np.arange(values.size)
    place[1:][values[1:] == values[:-1]] = 0
    return np.maximum.accumulate(place)


def _shared(values: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Says, in a sorted array, which values stand there more than once."""
    same = values[1:] == values[:-1]
    return np.concatenate([same, [False]]) | np.concatenate([[False], same])


class Made(NamedTuple):
    """The rows of a block, in order.

    Attributes:
        at: Twice the place of the event that each comes after, plus 1.
        time: Times in the clock's unit.
        end: Number of the arrival that each applies, among the jobs that end; or -1.
        commits: Whether each makes a version.
        version: Version after each.
    """

    at: Int[np.ndarray, " T"]
    time: Shaped[np.ndarray, " T"]
    end: Int[np.ndarray, " T"]
    commits: Bool[np.ndarray, " T"]
    version: Int[np.ndarray, " T"]


def within_bound(
    work: JobArrays,
    events: Events,
    arrives: Bool[np.ndarray, " E"],
    version: int,
    bound: int,
) -> Bool[np.ndarray, " E"]:
    """Returns which arrivals are applied, with a bound on staleness.

    Whether one is depends on those before it, so they are looked at one by one.

    Args:
        work: All jobs that have not ended before.
        events: The kinds of events.
        arrives: Whether each event is an arrival.
        version: Version before all of these events.
        bound: Largest staleness of a contribution that is applied, commits.
    """
    read = work.read_version.tolist()
    for job in np.flatnonzero(events.read_at == START).tolist():
        read[job] = 0
    reads_at = [-1] * events.job.size
    known = np.flatnonzero((events.read_at < LATER) & (events.read_at >= 0))
    for job, place in zip(known.tolist(), events.read_at[known].tolist(), strict=True):
        reads_at[place] = job
    accepted = bytearray(events.job.size)
    for place, (job, arrived, reader) in enumerate(
        zip(events.job.tolist(), arrives.tolist(), reads_at, strict=True)
    ):
        if arrived and version - read[job] <= bound:
            accepted[place] = 1
            version += 1
        if reader >= 0:
            read[reader] = version
    return np.frombuffer(accepted, bool)


def window_ends(
    arrivals: list[float], length: float, window: float, until: float
) -> tuple[list[float], float]:
    """Returns when windows end in which something has arrived, and when the next ends.

    Args:
        arrivals: Times of arrivals, virtual seconds, in order.
        length: Length of a window, virtual seconds.
        window: End of the window that is open; infinite where none is.
        until: Time up to which arrivals are known, virtual seconds.
    """
    ended, place = [], 0
    while True:
        if window == inf:
            if place == len(arrivals):
                break
            now = arrivals[place]
            window = now + max(up(now / length) * length - now, 0)
        if window > until:
            break
        ended.append(window)
        place = bisect_right(arrivals, window, place)
        window = inf
    return ended, window
