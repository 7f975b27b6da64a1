"""What becomes of arrivals, and the rows that they make."""

from bisect import bisect_right
from math import inf
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Shaped

from ...parts.expressions import up
from .events import START, Events
from .job_arrays import JobArrays
from .registers import LATER


class Verdict(NamedTuple):
    """What becomes of arrivals.

    Attributes:
        accepted: Whether each event is an arrival that is applied, or put in the
            buffer.
        commits: Whether each event makes a version.
        windows: Times at which the buffer is applied without an arrival.
        version: Version after each event.
    """

    accepted: Bool[np.ndarray, " E"]
    commits: Bool[np.ndarray, " E"]
    windows: list[float]
    version: Int[np.ndarray, " E"]


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
