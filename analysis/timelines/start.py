"""Where the start of a run ends, so that what follows is in the steady state.

All clients begin at once and read the state at which everybody is fresh, so that the
first contributions are hardly stale: of `n` jobs always in flight the mean over a whole
run of `T` commits is some `n / T` of its value too low. What stands beside a closed
form is therefore measured after the start.

The start is over when the jobs that first filled the system have ended: as many as are
ever in flight at once, of those that read first. Nothing of how stale they are plays a
part. MSER-5 (White, Cobb and Spratt, 2000), which cuts where the rest varies least, was
tried: it cuts too little off geometric staleness and nothing off long-tailed one, whose
largest values are the rest's (docs/theory.md has the numbers).
"""

import numpy as np
import pandas as pd
from jaxtyping import Float

UNDER_WAY = ("IN_FLIGHT", "BUFFERED")
"""Outcomes of jobs that had not ended when their run did."""


def end_of_start(jobs: pd.DataFrame) -> float:
    """Returns the virtual seconds at which the start of a run is over.

    Args:
        jobs: of one run; refreshes do not count.

    Returns:
        NaN where it is not over, or where fewer contributions follow than were made by
        then: such a run is too short to say anything of a steady state.
    """
    work = jobs.loc[jobs["kind"] == "work"]
    if work.empty:
        return float("nan")
    read = work["read_time"].to_numpy(np.float64)
    ended = _ended(work)
    order = np.argsort(read, kind="stable")
    gone = np.searchsorted(np.sort(ended), read[order], side="right")
    in_flight = np.arange(1, read.size + 1) - gone
    first = order[: max(1, int(in_flight.max()))]
    over = float(ended[first].max())
    applied = work["applied_time"].to_numpy(np.float64)
    before, after = int((applied <= over).sum()), int((applied > over).sum())
    return over if np.isfinite(over) and after >= max(before, 1) else float("nan")


def _ended(work: pd.DataFrame) -> Float[np.ndarray, " n"]:
    """Returns when each job was applied, or the last that is known of a lost one.

    Infinite for those under way.
    """
    ended = work["applied_time"].to_numpy(np.float64, copy=True)
    lost = np.isnan(ended)
    known = [f"{what}_time" for what in ("read", "begun", "computed", "arrived")]
    times = [work[name].to_numpy(np.float64)[lost] for name in known if name in work]
    ended[lost] = np.fmax.reduce(times)
    ended[work["outcome"].isin(UNDER_WAY).to_numpy()] = np.inf
    return ended
