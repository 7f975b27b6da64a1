"""Claims on how fast a metric goes to zero: `slope`."""

from typing import Any

import numpy as np

from analysis.claims.judged import FAILS, HOLDS, OPEN, Judged
from analysis.curves import decade_slopes, horizon_slopes
from analysis.frames import Study
from analysis.statistics import t_interval


def slope(study: Study, claim: dict[str, Any], *names: str) -> Judged:
    """Judges whether a metric falls at least as steeply as a bound on it."""
    metric, border = claim["metric"], claim["is"] + claim["within"]
    if len(names) == 1:
        of, slopes = metric, decade_slopes(study, *names, metric)
    else:
        of, slopes = f"mean {metric}", horizon_slopes(study, names, metric)
    known = slopes.dropna().to_numpy(np.float64)
    interval = t_interval(known)
    verdict = OPEN
    if interval.high <= border:
        verdict = HOLDS
    elif interval.low > border:
        verdict = FAILS
    to = f": slope of {of} at most {claim['is']:g} to {claim['within']:g}"
    measured = f"slope: {interval}" if known.size else ""
    why = f"slope against {border:g}"
    if known.size < slopes.size:
        why += f"; {slopes.size - known.size} replicates without a slope"
    return Judged(to, verdict, measured, interval, known.size, why)
