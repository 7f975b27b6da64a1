"""The end of the start of a run, while its jobs come in.

Source: `analysis.timelines.start`, which says why it is left out, and finds the same
instant in a whole record.
"""

from math import inf

import numpy as np
from jaxtyping import Bool, Float

from ..timeline import Jobs, Outcome

UNDER_WAY = (Outcome.IN_FLIGHT, Outcome.BUFFERED)
"""Outcomes of jobs that outlast their run."""


class Start:
    """The start of a run: over when the jobs that filled the system have ended.

    Those are as many as can be in flight at once, of the jobs that read first, and any
    others that read at the same instant as the last of them.

    Args:
        in_flight: Jobs that can be in flight at once, >= 1.

    Attributes:
        over: Its end by the jobs so far, virtual seconds; infinite before enough jobs
            have ended. It moves to the present when a job ends that read early, and
            into the past if what is last known of that job, a lost one, is there.
    """

    def __init__(self, in_flight: int) -> None:
        self._size, self.over = in_flight, inf
        self._read, self._ended = np.zeros((2, 0))
        self._last = inf  # time of the last of the reads that count

    def add(self, jobs: Jobs, work: Bool[np.ndarray, " J"]) -> None:
        """Takes up jobs that have ended, or outlast the run; `work` of them count."""
        early = work & (jobs.read_time <= self._last)
        if not early.any():
            return
        mine = Jobs(*(column[early] for column in jobs))
        self._read = np.concatenate([self._read, mine.read_time])
        self._ended = np.concatenate([self._ended, _ended(mine)])
        if self._read.size < self._size:
            return
        self._last = np.partition(self._read, self._size - 1)[self._size - 1]
        kept = self._read <= self._last
        self._read, self._ended = self._read[kept], self._ended[kept]
        self.over = float(self._ended.max())


def _ended(jobs: Jobs) -> Float[np.ndarray, " J"]:
    """Returns the time at which each job was applied, or a lost one's last known time.

    Infinite for those under way.
    """
    known = (jobs.read_time, jobs.begun_time, jobs.computed_time, jobs.arrived_time)
    ended = np.where(
        np.isnan(jobs.applied_time), np.fmax.reduce(known), jobs.applied_time
    )
    ended[np.isin(jobs.outcome, UNDER_WAY)] = inf
    return ended
