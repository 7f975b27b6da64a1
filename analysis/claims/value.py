"""Claims that final values are some number."""

import numpy as np

from analysis import bounds
from analysis.claims.final_values import judged, remarks
from analysis.claims.measured import Measured, final
from analysis.claims.verdict import Judged, near
from simulator.claims.value import Value


def judge(measured: Measured, claim: Value, name: str) -> Judged:
    """Judges whether final values are a number, to some tolerance."""
    metric, expected, within = claim.metric, claim.is_, claim.within
    numbers = measured.of(final(metric), name)
    known = ~np.isnan(numbers.values)
    values, open_ends = numbers.values[known], numbers.bounds[known]
    sample = bounds.contrast(values[:, None], open_ends[:, None], np.ones(1))
    evidence = near(sample, expected - within, expected + within)
    to = f": {metric} is {expected:g} to {within:g}"
    said = remarks(numbers, name)
    why = f"whole interval within {within:g} of {expected:g}, or outside{said}"
    return judged(to, metric, sample, evidence, why)
