"""Claims that one variant stops at its target after fewer commits than another."""

import numpy as np
import pandas as pd

from analysis import targets
from analysis.claims.measured import Frame, Measured
from analysis.claims.speed import ratio_to_target
from analysis.claims.verdict import Judged
from analysis.frames import Study, evaluations, runs
from simulator.claims.fewer import Fewer

TO_STOP = "commits to the target"


def quantities(claim: Fewer) -> dict[str, Frame]:
    """Returns the commits until runs stopped at their target."""
    del claim
    return {TO_STOP: _commits_to_stop}


def judge(measured: Measured, claim: Fewer, one: str, other: str) -> Judged:
    """Judges the ratio of commits until runs stopped at their target.

    The median of the ratios counts, against `by_at_least`, as that of `faster`.
    """
    sides = [measured.of(TO_STOP, group) for group in (one, other)]
    words = "times fewer commits"
    return ratio_to_target(claim, one, other, sides, " to the target", words)


def _commits_to_stop(study: Study) -> pd.DataFrame:
    """Returns between which commits runs came to their target, at which they stopped.

    A run that diverged or stalled would never have reached it.
    """
    table, seen = runs(study), evaluations(study)
    commits = table["commits"].astype(np.float64)
    earlier = seen["commits"] < seen["run"].map(table.set_index("run")["commits"])
    before = seen.loc[earlier].groupby("run")["commits"].max()
    reached = table["stop"] == "target"
    low = commits.where(~reached, table["run"].map(before).fillna(0.0))
    return table[["group", "replicate"]].assign(
        low=low.mask(table["stop"].isin(targets.HOPELESS), np.inf),
        high=commits.where(reached, np.inf),
    )
