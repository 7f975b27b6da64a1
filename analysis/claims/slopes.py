"""Claims on how fast a metric goes to zero: `slope`."""

from typing import Any

import numpy as np

from analysis import bounds
from analysis.bounds import EXACT, Sample
from analysis.claims.judged import Evidence, Judged
from analysis.claims.measured import Measured, decade_slope, horizon, run_mean
from analysis.statistics import ROUNDING, log_log_slope


def slope(measured: Measured, claim: dict[str, Any], *names: str) -> Judged:
    """Judges whether a metric falls at least as steeply as a bound on it."""
    metric, border = claim["metric"], claim["is"] + claim["within"]
    if len(names) == 1:
        numbers = measured.of(decade_slope(metric), *names)
        of, slopes, lost = metric, numbers.values, numbers.bounds != EXACT
    else:
        of = f"mean {metric}"
        slopes, lost = _over_horizons(measured, names, metric)
    known = np.isfinite(slopes)
    sample = Sample(slopes[known], above=bool(lost[known].any()))
    slack = ROUNDING * (1 + abs(border))  # a slope may be the border
    evidence = Evidence(
        bounds.below(sample, border + slack), bounds.above(sample, border + slack)
    )
    interval = bounds.interval(sample)
    to = f": slope of {of} at most {claim['is']:g} to {claim['within']:g}"
    n = int(known.sum())
    why = f"slope against {border:g}"
    if diverged := int(lost.sum()):
        why += f"; {diverged} replicates diverged and do not fall"
    if n < slopes.size:
        why += f"; {slopes.size - n} replicates without a slope"
    return Judged(to, evidence, f"slope: {interval}" if n else "", interval, n, why)


def _over_horizons(
    measured: Measured, names: tuple[str, ...], metric: str
) -> tuple[np.ndarray, np.ndarray]:
    """Returns how the mean of each replicate falls with the horizon of its runs.

    Returns:
        Slopes of the replicates that all groups have, NaN where a mean is not positive
        or all horizons are the same; and in which a run diverged, so that the slope is
        no less than zero, nor than any other.
    """
    means = [measured.of(run_mean(metric), name) for name in names]
    last = [measured.of(horizon(run_mean(metric)), name) for name in names]
    common = sorted(set.intersection(*(set(side.replicates) for side in means)))
    slopes, lost = np.full(len(common), np.nan), np.zeros(len(common), bool)
    for row, replicate in enumerate(common):
        at = [int(np.searchsorted(side.replicates, replicate)) for side in means]
        values = np.array([side.values[i] for side, i in zip(means, at, strict=True)])
        horizons = [side.values[i] for side, i in zip(last, at, strict=True)]
        lost[row] = any(
            side.bounds[i] != EXACT for side, i in zip(means, at, strict=True)
        )
        if not lost[row]:
            slopes[row] = log_log_slope(np.array(horizons), values)
    slopes[lost] = slopes[np.isfinite(slopes)].max(initial=0.0)
    return slopes, lost
