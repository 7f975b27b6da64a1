"""Which arrivals are applied, and when a buffer is, one after the other."""

from bisect import bisect_right
from math import inf

import numpy as np
from jaxtyping import Bool

from ...config.expressions import up
from .events import START, Events
from .job_arrays import JobArrays
from .registers import LATER


def within_bound(
    work: JobArrays,
    events: Events,
    arrives: Bool[np.ndarray, " E"],
    version: int,
    bound: int,
) -> Bool[np.ndarray, " E"]:
    """Says which arrivals are applied, where those that are too stale are not.

    Whether one is depends on those before it, so they are looked at one by one.

    Args:
        work: All jobs that have not ended before.
        events: What happens to them.
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
