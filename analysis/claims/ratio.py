"""Claims on the ratio of what runs of two variants come to."""

import numpy as np
import pandas as pd

from ...simulator.claims.ratio import Ratio
from ...simulator.metrics import QUANTITIES
from .. import bounds, targets
from ..frames import Study, runs
from .final_values import DIFFERENCE, remarks
from .measured import Frame, Measured, final, final_frame, together
from .verdict import Judged, judged, near


def quantities(claim: Ratio) -> dict[str, Frame]:
    """Returns what runs come to at their ends."""
    of = claim.of
    return {_end(of): _at_end(of) if of in QUANTITIES else final_frame(of)}


def judge(measured: Measured, claim: Ratio, one: str, other: str) -> Judged:
    """Judges whether the ratio of two sides is the claimed one.

    The median over pairs of replicates counts. A number that cannot be above zero has
    no ratio: its pair counts for neither side.
    """
    of, expected, within = claim.of, claim.is_, claim.within
    sides = [measured.of(_end(of), group) for group in (one, other)]
    said = "".join(map(remarks, sides, (one, other)))
    sample = bounds.contrast(bounds.logarithm(together(*sides)), DIFFERENCE)
    if none := int((np.isinf(sample.low) & np.isinf(sample.high)).sum()):
        said += f"; {none} pairs without a ratio of numbers above 0"
    lowest = np.log(expected - within) if expected > within else -np.inf
    evidence = near(sample, float(lowest), float(np.log(expected + within)))
    to = f": ratio of {of} is {expected:g} to {within:g}"
    why = f"ratio within {within:g} of {expected:g}, or outside{said}"
    return judged(to, f"ratio of {of}", sample, evidence, why, logs=True)


def _end(of: str) -> str:
    """Returns the name of what a run has come to."""
    return f"{of} at the end" if of in QUANTITIES else final(of)


def _at_end(of: str) -> Frame:
    """Returns what runs came to; one that diverged would have come to more."""

    def measured(study: Study) -> pd.DataFrame:
        table = targets.final_quantities(study, of, diverged=True)
        lost = (runs(study)["stop"] == "diverged").to_numpy(bool)
        return table.assign(low=table["value"], high=table["value"].mask(lost, np.inf))

    return measured
