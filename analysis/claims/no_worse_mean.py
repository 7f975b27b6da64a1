"""Claims that the mean of final values over a sweep is not worse."""

import numpy as np

from ...simulator.claims.no_worse_mean import NoWorseMean
from ...simulator.trace import StudyError
from .. import bounds
from .final_values import remarks
from .measured import Measured, Numbers, final, together
from .sweeps import swept
from .verdict import Judged, judged, side


def judge(measured: Measured, claim: NoWorseMean, *groups: str) -> Judged:
    """Judges whether final values are worse by less than `within` in a sweep's mean.

    The mean over the swept values is one number of each replicate, of which the median
    counts: swept values, such as networks, are those of the study and no sample of
    others. What diverged counts as in `no_worse`.

    Raises:
        StudyError: The key is not swept, or others are as well.
    """
    metric, within, over = claim.metric, claim.within, claim.over
    one, other = (
        swept(measured, over, name, [g for g in groups if g in measured.groups(name)])
        for name in (claim.no_worse_mean, claim.than)
    )
    sides: list[Numbers] = []
    said = ""
    for value, group in one.items():
        if value not in other:
            raise StudyError(f"{claim.than} has no runs at {over} {value}")
        for name in (group, other[value]):
            sides.append(measured.of(final(metric), name))
            said += remarks(sides[-1], name)
    weights = np.tile([1.0, -1.0], len(one)) / len(one)
    sample = bounds.contrast(together(*sides), weights)
    rising = measured.metric(metric).higher_is_better
    better = sample if rising else sample.mirrored
    to = f" in {metric} to {within:g}, averaged over {over}"
    why = f"difference against {-within if rising else within:g}{said}"
    evidence = side(better, -within)
    return judged(to, f"mean difference of {metric}", sample, evidence, why)
