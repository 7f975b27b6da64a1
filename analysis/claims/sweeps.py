"""Claims on what happens along a sweep: `monotone` and `steady`."""

from typing import Any

import numpy as np
import pandas as pd

from analysis.claims.judged import FAILS, HOLDS, NOTHING, OPEN, Judged, near, side
from analysis.frames import Study, column_of, ordered, runs
from analysis.statistics import t_interval
from analysis.targets import final_values
from simulator.trace import StudyError

WORDS = {"rising": ("rises", "down"), "falling": ("falls", "up")}
"""How a direction is said, and where a step goes that is against it."""


def monotone(study: Study, claim: dict[str, Any], name: str) -> Judged:
    """Judges whether final values grow along a sweep, or whether they fall."""
    metric, over = claim["metric"], claim["over"]
    direction = claim.get("direction", "rising")
    sign = 1.0 if direction == "rising" else -1.0
    verb, against = WORDS[direction]
    frame = _along(study, metric, over, name)
    to = f": {metric} {verb} with {over}"
    if frame.shape[1] < 2:
        return Judged(to, OPEN, "", NOTHING, 0, f"{over} has fewer than two values")
    values = frame.to_numpy(np.float64)
    ranks = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    slopes = values @ ranks / (ranks @ ranks)
    steps = [t_interval(step) for step in np.diff(sign * values).T]
    wrong = [
        f"{frame.columns[i]} to {frame.columns[i + 1]}"
        for i, step in enumerate(steps)
        if step.high < 0
    ]
    verdict = FAILS if wrong else side(t_interval(sign * slopes), 0.0)
    interval = t_interval(slopes)
    measured = f"per swept value: {interval}"
    why = "slope over ranks against 0"
    if wrong:
        why = f"goes {against} from {', '.join(wrong)}"
    return Judged(to, verdict, measured, interval, len(frame), why)


def steady(study: Study, claim: dict[str, Any], name: str) -> Judged:
    """Judges whether final values stay the same along a sweep."""
    metric, over, within = claim["metric"], claim["over"], claim["within"]
    values = _along(study, metric, over, name)
    to = f": {metric} the same for all {over}, to {within:g}"
    pairs = [
        t_interval((values[a] - values[b]).to_numpy(np.float64))
        for i, a in enumerate(values.columns)
        for b in values.columns[:i]
    ]
    if not pairs:
        return Judged(to, OPEN, "", NOTHING, 0, f"{over} has fewer than two values")
    worst = max(pairs, key=lambda pair: abs(pair.mean))
    verdicts = {near(pair, 0.0, within) for pair in pairs}
    verdict = FAILS if FAILS in verdicts else OPEN if OPEN in verdicts else HOLDS
    measured = f"largest difference: {worst}"
    why = f"intervals of all pairs within {within:g}, or one outside"
    return Judged(to, verdict, measured, worst, len(values), why)


def _along(study: Study, metric: str, over: str, name: str) -> pd.DataFrame:
    """Returns final values, a row per replicate and a column per swept value.

    Numbers are in their order, words in that of the sweep.

    Raises:
        StudyError: the key is not swept, or others are as well.
    """
    table = runs(study)
    mine = table.loc[table["variant"] == name]
    column = column_of(study, over)
    if column not in mine or mine[column].isna().all():
        raise StudyError(f"{over} is not swept for {name}")
    finals = final_values(study, metric)
    joined = mine[["group", "replicate", column]].merge(
        finals, on=["group", "replicate"]
    )
    if joined.duplicated(["replicate", column]).any():
        raise StudyError(f"more than {over} is swept for {name}")
    values = joined.pivot_table(
        index="replicate", columns=column, values="value", dropna=False
    )
    return values[ordered(mine[column])].dropna()
