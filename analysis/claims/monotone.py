"""Claims that final values grow along a sweep, or fall."""

import numpy as np

from ...simulator.claims.monotone import Monotone
from .. import bounds
from .measured import Measured
from .sweeps import along
from .verdict import NONE, NOTHING, Evidence, Judged, judged, side

WORDS = {"rising": ("rises", "rise"), "falling": ("falls", "fall")}
"""Words for a direction, of the swept values and of a step."""


def judge(measured: Measured, claim: Monotone, *groups: str) -> Judged:
    """Judges whether final values grow along a sweep, or whether they fall.

    The claim holds if they do from the first to the last swept value, and if no step
    from one to the next goes the other way by `within`: all must pass. It does not hold
    if one fails, by Bonferroni's correction.
    """
    metric, over, within = claim.metric, claim.over, claim.within
    sign = 1.0 if claim.direction == "rising" else -1.0
    verb, noun = WORDS[claim.direction]
    names, sample, said = along(measured, claim, groups)
    to = f": {metric} {verb} with {over}" + (f", to {within:g}" if within else "")
    if len(names) < 2:
        return Judged(to, NONE, "", NOTHING, 0, f"{over} has fewer than two values")
    steps = [
        bounds.contrast(sample, sign * step)
        for step in np.diff(np.eye(len(names)), 1, 0)
    ]
    ends = np.eye(len(names))[-1] - np.eye(len(names))[0]
    found = [side(bounds.contrast(sample, sign * ends), 0.0)]
    found += [side(step, 0.0 - within) for step in steps if len(steps) > 1]
    evidence = Evidence(
        max(step.for_it for step in found),
        min(1.0, len(found) * min(step.against for step in found)),
    )
    sizes = [bounds.interval(step).mean for step in steps]
    least = int(np.argmin(np.nan_to_num(sizes, nan=-np.inf)))
    of = f"smallest {noun}, {names[least]} to {names[least + 1]}"
    why = f"every step against {0.0 - within:g}{said}"
    return judged(to, of, steps[least], evidence, why)
