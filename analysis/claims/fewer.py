"""Claims that one variant stops at its target after fewer commits than another."""

import numpy as np
import pandas as pd

from analysis import targets
from analysis.bounds import AT_LEAST, EXACT
from analysis.claims.measured import Frame, Measured
from analysis.claims.speed import ratio_to_target
from analysis.claims.verdict import Judged
from analysis.frames import Study, runs
from simulator.claims.fewer import Fewer

TO_STOP = "commits to the target"


def quantities(claim: Fewer) -> dict[str, Frame]:
    """Returns the commits until runs stopped at their target."""
    del claim
    return {TO_STOP: _commits_to_stop}


def judge(measured: Measured, claim: Fewer, one: str, other: str) -> Judged:
    """Judges the ratio of commits until runs stopped at their target.

    The geometric mean of the ratios counts, against `by_at_least`.
    """
    sides = [measured.of(TO_STOP, group) for group in (one, other)]
    words = "times fewer commits"
    return ratio_to_target(claim, one, other, sides, " to the target", words)


def _commits_to_stop(study: Study) -> pd.DataFrame:
    """Returns the commits until runs stopped at their target.

    A run that diverged or stalled would never have reached it: it counts as waiting as
    long as the longest run.
    """
    table = runs(study)
    commits = table["commits"].astype(np.float64)
    never = table["stop"].isin(targets.HOPELESS)
    return table[["group", "replicate"]].assign(
        value=commits.mask(never, commits.max()),
        bound=np.where(table["stop"] == "target", EXACT, AT_LEAST),
    )
