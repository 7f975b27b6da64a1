"""Claims that final values grow along a sweep, or fall."""

import numpy as np

from analysis import bounds
from analysis.claims.measured import Measured
from analysis.claims.sweeps import along
from analysis.claims.verdict import NONE, NOTHING, Evidence, Judged, side
from analysis.statistics import LEVEL
from simulator.claims.monotone import Monotone

WORDS = {"rising": ("rises", "down"), "falling": ("falls", "up")}
"""How a direction is said, and where a step goes that is against it."""


def judge(measured: Measured, claim: Monotone, *groups: str) -> Judged:
    """Judges whether final values grow along a sweep, or whether they fall.

    Of each replicate the slope of its final values over the ranks of the swept values
    counts. A rise holds if the mean slope is above zero and no step from one swept
    value to the next goes down significantly; it does not hold if the slope is below
    zero or a step goes down. A fall is the mirror image. Steps and slope are corrected
    by Bonferroni.
    """
    metric, over = claim.metric, claim.over
    sign = 1.0 if claim.direction == "rising" else -1.0
    verb, against = WORDS[claim.direction]
    names, values, ends, missing = along(measured, claim, groups)
    to = f": {metric} {verb} with {over}"
    n, k = values.shape
    if k < 2:
        return Judged(to, NONE, "", NOTHING, 0, f"{over} has fewer than two values")
    ranks = np.arange(k) - (k - 1) / 2
    slopes = bounds.contrast(values, ends, ranks / (ranks @ ranks))
    trend = side(slopes if sign > 0 else bounds.mirrored(slopes), 0.0)
    steps = [
        side(bounds.contrast(values, ends, sign * step), 0.0)
        for step in np.diff(np.eye(k), axis=0)
    ]
    chances = [step.against for step in steps]
    chances += [trend.against] if k > 2 else []  # two values have one step
    contrary = min(1.0, len(chances) * min(chances))
    refuted = contrary <= (1 - LEVEL) / 2
    evidence = Evidence(1.0 if refuted else trend.for_it, contrary)
    interval = NOTHING if slopes.open else bounds.interval(slopes)
    why = f"slope over ranks against 0{missing}"
    wrong = [
        f"{names[i]} to {names[i + 1]}"
        for i, step in enumerate(steps)
        if step.against * len(chances) <= (1 - LEVEL) / 2
    ]
    if wrong:
        why = f"goes {against} from {', '.join(wrong)}{missing}"
    return Judged(to, evidence, f"per swept value: {interval}", interval, n, why)
