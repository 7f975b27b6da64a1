"""Claims that final values stay the same along a sweep."""

from itertools import combinations

import numpy as np

from analysis import bounds
from analysis.claims.measured import Measured
from analysis.claims.sweeps import along
from analysis.claims.verdict import NONE, NOTHING, Evidence, Judged, near
from simulator.claims.steady import Steady


def judge(measured: Measured, claim: Steady, *groups: str) -> Judged:
    """Judges whether final values stay the same along a sweep.

    The claim holds if the differences of final values between all pairs of swept values
    are within `within`, and does not hold if one is outside, by Bonferroni's
    correction.
    """
    metric, over, within = claim.metric, claim.over, claim.within
    _, values, ends, missing = along(measured, claim, groups)
    to = f": {metric} the same for all {over}, to {within:g}"
    n, k = values.shape
    if k < 2:
        return Judged(to, NONE, "", NOTHING, 0, f"{over} has fewer than two values")
    unit = np.eye(k)
    pairs = [
        bounds.contrast(values, ends, unit[j] - unit[i])
        for i, j in combinations(range(k), 2)
    ]
    judged = [near(pair, -within, within) for pair in pairs]
    evidence = Evidence(
        max(pair.for_it for pair in judged),
        min(1.0, len(judged) * min(pair.against for pair in judged)),
    )
    intervals = [NOTHING if pair.open else bounds.interval(pair) for pair in pairs]
    worst = max(intervals, key=lambda pair: np.nan_to_num(abs(pair.mean), nan=np.inf))
    words = f"largest difference: {worst}"
    why = f"intervals of all pairs within {within:g}, or one outside{missing}"
    return Judged(to, evidence, words, worst, n, why)
