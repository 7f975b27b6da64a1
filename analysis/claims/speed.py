"""Claims on what it takes to reach a target: `faster` and `fewer`."""

from typing import Any

import numpy as np
import pandas as pd

from analysis.claims.judged import FAILS, HOLDS, NOTHING, OPEN, Judged, side
from analysis.frames import Study, runs
from analysis.phases import evaluations_by
from analysis.statistics import Interval, paired_t_interval
from analysis.targets import times_to_target
from simulator.trace import StudyError

LESS = {
    "time": "faster",
    "computation_s": "less computation",
    "communication_s": "less communication",
    "epsilon": "less epsilon",
}
"""How much less is said; of what else is counted there are fewer."""
NOT_EVERYWHERE = {
    "rounds": "the protocol of {} has no rounds",
    "epsilon": "the runs of {} have no epsilon",
}
"""What cannot be counted in every run."""


def faster(study: Study, claim: dict[str, Any], one: str, other: str) -> Judged:
    """Judges the ratio of times to a target, replicate by replicate.

    A replicate in which one side did not reach the target bounds its ratio from one
    side. The mean of such bounds bounds the mean ratio, so they can speak for a claim
    (the slower did not arrive) or against it (the faster did not).
    """
    ((metric, value),) = claim["to"].items()
    counted = claim.get("counted_in", "time")
    _check_counted(study, counted, one, other)
    times = times_to_target(study, metric, value, counted)
    words = f"times {LESS.get(counted, f'fewer {counted}')}"
    return _ratio(claim, one, other, times, f" to {metric} {value:g}", words)


def fewer(study: Study, claim: dict[str, Any], one: str, other: str) -> Judged:
    """Judges the ratio of commits until runs stopped at their target."""
    found = runs(study)
    counts = found[["group", "replicate"]].assign(
        time=found["commits"].astype(float), reached=found["stop"] == "target"
    )
    return _ratio(claim, one, other, counts, " to the target", "times fewer commits")


def _check_counted(study: Study, counted: str, *names: str) -> None:
    """Refuses groups of which there is nothing to count.

    Raises:
        StudyError: naming one.
    """
    if counted not in NOT_EVERYWHERE:
        return
    table = evaluations_by(study, counted)
    for name in names:
        mine = table.loc[table["group"] == name, counted]
        if len(mine) and mine.isna().all():
            raise StudyError(f"{NOT_EVERYWHERE[counted].format(name)} to be counted")


def _ratio(
    claim: dict[str, Any],
    one: str,
    other: str,
    times: pd.DataFrame,
    to: str,
    words: str,
) -> Judged:
    """Judges the ratio of times, or of counts, until something was reached."""
    least = claim.get("by_at_least", 1.0)
    if least != 1:
        to += f", {least:g} times"
    fast, slow = (_by_replicate(times, group) for group in (one, other))
    both = fast.add_suffix("_fast").join(slow.add_suffix("_slow"), how="inner")
    n = len(both)
    did_fast, did_slow = (both[f"reached_{k}"].to_numpy(bool) for k in ("fast", "slow"))
    reached = f"reached {did_fast.sum()}/{n} and {did_slow.sum()}/{n}"
    if not did_fast.all() and not did_slow.all():
        why = "neither side always reached the target"
        return Judged(to, OPEN, reached, NOTHING, n, why)
    times_fast, times_slow = (
        both[f"time_{k}"].to_numpy(np.float64) for k in ("fast", "slow")
    )
    if not (times_fast.all() and times_slow.all()):
        why = "the target was reached before anything was learned"
        return Judged(to, OPEN, reached, NOTHING, n, why)
    ratios = paired_t_interval(np.log(times_slow), np.log(times_fast))
    interval = Interval(*(float(end) for end in np.exp(ratios)))
    verdict, why = side(interval, least), f"ratio against {least:g}"
    if not did_slow.all():
        verdict = verdict if verdict == HOLDS else OPEN
        why = f"ratio is a lower bound: {other} is censored"
    elif not did_fast.all():
        verdict = verdict if verdict == FAILS else OPEN
        why = f"ratio is an upper bound: {one} is censored"
    measured = f"{words}: {interval}; {reached}"
    return Judged(to, verdict, measured, interval, n, why)


def _by_replicate(times: pd.DataFrame, group: str) -> pd.DataFrame:
    mine = times.loc[times["group"] == group, ["replicate", "time", "reached"]]
    return mine.set_index("replicate")
