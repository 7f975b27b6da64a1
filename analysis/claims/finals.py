"""Claims on how runs end: `higher`, `close`, `ratio` and `value`."""

from typing import Any

import numpy as np
import pandas as pd

from analysis.claims.judged import NOTHING, OPEN, Judged, near, side
from analysis.frames import Study
from analysis.statistics import Interval, paired_t_interval, t_interval
from analysis.targets import final_quantities, final_values
from simulator.scenario.metrics import QUANTITIES


def higher(study: Study, claim: dict[str, Any], one: str, other: str) -> Judged:
    """Judges the difference of final values, whether more of them is good or not."""
    metric = claim["metric"]
    first, second, lost = _pairs(final_values(study, metric), one, other)
    interval = paired_t_interval(first, second)
    measured = f"difference of {metric}: {interval}"
    verdict, why = side(interval, 0.0), f"difference against 0{lost}"
    return Judged(f" in {metric}", verdict, measured, interval, first.size, why)


def close(study: Study, claim: dict[str, Any], one: str, other: str) -> Judged:
    """Judges whether final values are equivalent, which is more than not different."""
    metric, within = claim["metric"], claim["within"]
    first, second, lost = _pairs(final_values(study, metric), one, other)
    interval = paired_t_interval(first, second)
    verdict = near(interval, 0.0, within)
    measured = f"difference of {metric}: {interval}"
    why = f"whole interval within {within:g}, or outside{lost}"
    to = f" in {metric} to {within:g}"
    return Judged(to, verdict, measured, interval, first.size, why)


def ratio(study: Study, claim: dict[str, Any], one: str, other: str) -> Judged:
    """Judges whether what one side came to is so many times what the other did.

    The ratio is the geometric mean over pairs of replicates.
    """
    of, expected, within = claim["of"], claim["is"], claim["within"]
    ends = final_quantities if of in QUANTITIES else final_values
    first, second, lost = _pairs(ends(study, of), one, other)
    to = f": ratio of {of} is {expected:g} to {within:g}"
    if not ((first > 0).all() and (second > 0).all()):
        why = f"a ratio needs {of} > 0 on both sides{lost}"
        return Judged(to, OPEN, "", NOTHING, first.size, why)
    logs = paired_t_interval(np.log(first), np.log(second))
    interval = Interval(*(float(end) for end in np.exp(logs)))
    verdict = near(interval, expected, within)
    why = f"whole interval within {within:g} of {expected:g}, or outside{lost}"
    measured = f"ratio of {of}: {interval}" if first.size else ""
    return Judged(to, verdict, measured, interval, first.size, why)


def value(study: Study, claim: dict[str, Any], name: str) -> Judged:
    """Judges whether final values are a number, to some tolerance."""
    metric, expected, within = claim["metric"], claim["is"], claim["within"]
    known, lost = _known(_of(final_values(study, metric), name), name)
    interval = t_interval(known.to_numpy(np.float64))
    verdict = near(interval, expected, within)
    to = f": {metric} is {expected:g} to {within:g}"
    why = f"whole interval within {within:g} of {expected:g}, or outside{lost}"
    measured = f"{metric}: {interval}" if known.size else ""
    return Judged(to, verdict, measured, interval, known.size, why)


def _pairs(
    ends: pd.DataFrame, one: str, other: str
) -> tuple[np.ndarray, np.ndarray, str]:
    """Returns both sides of each replicate that has both, and who has none."""
    first, lost = _known(_of(ends, one), one)
    second, more = _known(_of(ends, other), other)
    both = first.index.intersection(second.index)
    sides = (side.loc[both].to_numpy(np.float64) for side in (first, second))
    return *sides, lost + more


def _of(ends: pd.DataFrame, group: str) -> pd.Series:
    mine = ends.loc[ends["group"] == group]
    return pd.Series(mine["value"].to_numpy(np.float64), mine["replicate"])


def _known(ends: pd.Series, group: str) -> tuple[pd.Series, str]:
    """Returns the values that there are, and words on how many there are not."""
    missing = int(ends.isna().sum())
    lost = f"; {missing} of {group} without a final value" if missing else ""
    return ends.dropna(), lost
