"""The end of a run's start-up, after which it is in the steady state.

All clients start at once and read the initial state, so that the first contributions
are hardly stale: of `n` jobs always in flight the mean over a whole run of `T` commits
is some `n / T` of its value too low. Measures with a closed form therefore leave out
the start.

The start is over when the jobs that first filled the system have ended: as many as can
be in flight at once, of those that read first, with any others that read at the same
instant as the last of them. Their staleness is not counted. MSER-5 (White, Cobb and
Spratt, 2000), which cuts where the rest varies least, was tried: it cuts too little off
geometric staleness and nothing off long-tailed one, whose largest values are the rest's
(docs/theory.md has the numbers).
"""

import numpy as np
import pandas as pd
from jaxtyping import Float

UNDER_WAY = ("IN_FLIGHT", "BUFFERED")
"""Outcomes of jobs that outlast their run."""


def end_of_start(jobs: pd.DataFrame, in_flight: int) -> float:
    """Returns the end of a run's start-up, virtual seconds.

    Args:
        jobs: Jobs of one run; refreshes do not count.
        in_flight: Jobs that can be in flight at once.

    Returns:
        NaN where the start does not end, or fewer contributions follow than came
        before: such a run is too short for a steady state.
    """
    work = jobs.loc[jobs["kind"] == "work"]
    if len(work) < in_flight:
        return float("nan")
    read = work["read_time"].to_numpy(np.float64)
    last = np.partition(read, in_flight - 1)[in_flight - 1]
    over = float(_ended(work)[read <= last].max())
    applied = work["applied_time"].to_numpy(np.float64)
    before, after = int((applied <= over).sum()), int((applied > over).sum())
    return over if np.isfinite(over) and after >= max(before, 1) else float("nan")


def _ended(work: pd.DataFrame) -> Float[np.ndarray, " n"]:
    """Returns the time at which each job was applied, or a lost one's last known time.

    Infinite for those under way.
    """
    ended = work["applied_time"].to_numpy(np.float64, copy=True)
    lost = np.isnan(ended)
    known = ("read_time", "begun_time", "computed_time", "arrived_time")
    times = [work[name].to_numpy(np.float64)[lost] for name in known if name in work]
    ended[lost] = np.fmax.reduce(times)
    ended[work["outcome"].isin(UNDER_WAY).to_numpy()] = np.inf
    return ended
