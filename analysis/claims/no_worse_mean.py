"""Claims that final values are not worse in the mean of what is swept."""

import numpy as np

from analysis import bounds
from analysis.bounds import Sample
from analysis.claims.final_values import difference, judged
from analysis.claims.measured import Measured
from analysis.claims.sweeps import swept
from analysis.claims.verdict import Judged, side
from simulator.claims.no_worse_mean import NoWorseMean
from simulator.trace import StudyError


def judge(measured: Measured, claim: NoWorseMean, *groups: str) -> Judged:
    """Judges whether final values are worse by less than `within` in a sweep's mean.

    Each swept value gives one number, the mean paired difference of its replicates: the
    t-test is over swept values, such as networks, and says how others of their kind
    would do. What diverged counts as in `no_worse`.

    Raises:
        StudyError: The key is not swept, or others are as well.
    """
    metric, within, over = claim.metric, claim.within, claim.over
    at = [
        swept(measured, over, name, [g for g in groups if g in measured.groups(name)])
        for name in (claim.no_worse_mean, claim.than)
    ]
    values, remarks, above, below = [], "", False, False
    for value in at[0]:
        if value not in at[1]:
            raise StudyError(f"{claim.than} has no runs at {over} {value}")
        pair, said = difference(measured, metric, at[0][value], at[1][value])
        if pair.values.size:
            values.append(pair.values.mean())
            above, below = above or pair.above, below or pair.below
        remarks += said
    sample = Sample(np.array(values, np.float64), above, below)
    rising = measured.metric(metric).higher_is_better
    better = sample if rising else bounds.mirrored(sample)
    to = f" in {metric} to {within:g}, in the mean of {over}"
    why = f"difference against {-within if rising else within:g}{remarks}"
    evidence = side(better, -within)
    return judged(to, f"mean difference of {metric}", sample, evidence, why)
