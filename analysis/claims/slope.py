"""Claims on how fast a metric goes to zero."""

import numpy as np

from analysis import bounds
from analysis.bounds import EXACT, Sample
from analysis.claims.measured import Frame, Measured, horizon
from analysis.claims.verdict import Evidence, Judged
from analysis.curves import decade_slopes, run_means
from analysis.statistics import ROUNDING, log_log_slope
from simulator.claims.slope import Slope


def quantities(claim: Slope) -> dict[str, Frame]:
    """Returns slopes of single runs, or means over runs of different horizons."""
    metric = claim.metric
    if isinstance(claim.slope, str):
        return {_decade_slope(metric): lambda study: decade_slopes(study, metric)}
    return {run_mean(metric): lambda study: run_means(study, metric)}


def judge(measured: Measured, claim: Slope, *names: str) -> Judged:
    """Judges whether a metric falls at least as steeply as a bound on it.

    The mean exponent counts with which the metric falls with the commits: of one
    variant over its last decade of commits, of several variants by their means over all
    commits. A metric may fall faster than a theorem bounds it: the claim holds if the
    exponent is at or below `is` + `within`, and does not hold if it is above.
    """
    metric, border = claim.metric, claim.is_ + claim.within
    if len(names) == 1:
        numbers = measured.of(_decade_slope(metric), *names)
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
    to = f": slope of {of} at most {claim.is_:g} to {claim.within:g}"
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


def _decade_slope(metric: str) -> str:
    """Returns the name of a metric's slope over the last decade of commits."""
    return f"slope of {metric}"


def run_mean(metric: str) -> str:
    """Returns the name of a metric's mean over a run."""
    return f"mean {metric}"
