"""Claims on the ratio of what runs of two variants come to."""

import numpy as np
import pandas as pd

from analysis import bounds, targets
from analysis.bounds import AT_LEAST, EXACT
from analysis.claims.final_values import judged, paired, positive, remarks
from analysis.claims.measured import Frame, Measured, final, final_frame
from analysis.claims.verdict import NONE, NOTHING, Judged, near
from analysis.frames import Study, runs
from analysis.statistics import Interval
from simulator.claims.ratio import Ratio
from simulator.metrics import QUANTITIES


def quantities(claim: Ratio) -> dict[str, Frame]:
    """Returns what runs come to at their ends."""
    of = claim.of
    return {_end(of): _at_end(of) if of in QUANTITIES else final_frame(of)}


def judge(measured: Measured, claim: Ratio, one: str, other: str) -> Judged:
    """Judges whether what one side came to is so many times what the other did.

    The ratio is the geometric mean over pairs of replicates.
    """
    of, expected, within = claim.of, claim.is_, claim.within
    sides = [measured.of(_end(of), group) for group in (one, other)]
    sides = [positive(side, sides, of) for side in sides]
    said = remarks(sides[0], one) + remarks(sides[1], other)
    first, second = paired(*sides)
    (_, above, *_), (_, below, *_) = first, second
    to = f": ratio of {of} is {expected:g} to {within:g}"
    if not ((above > 0).all() and (below > 0).all()):
        why = f"a ratio needs {of} > 0 on both sides{said}"
        return Judged(to, NONE, "", NOTHING, above.size, why)
    sample = bounds.difference(
        np.log(above), np.log(below), first.bounds, second.bounds
    )
    lowest = np.log(expected - within) if expected > within else -np.inf
    evidence = near(sample, float(lowest), float(np.log(expected + within)))
    why = f"whole interval within {within:g} of {expected:g}, or outside{said}"
    found = judged(to, f"ratio of {of}", sample, evidence, why)
    times = Interval(*(float(x) for x in np.exp(found.interval)))
    words = f"ratio of {of}: {times}" if found.measured else ""
    return found._replace(interval=times, measured=words)


def _end(of: str) -> str:
    """Returns the name of what a run has come to."""
    return f"{of} at the end" if of in QUANTITIES else final(of)


def _at_end(of: str) -> Frame:
    """Returns what runs came to; one that diverged would have come to more."""

    def measured(study: Study) -> pd.DataFrame:
        table = targets.final_quantities(study, of, diverged=True)
        lost = (runs(study)["stop"] == "diverged").to_numpy(bool)
        return table.assign(bound=np.where(lost, AT_LEAST, EXACT))

    return measured
