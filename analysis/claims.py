"""Whether what a source says holds here: paired differences, and a verdict."""

from typing import Any

import numpy as np
import pandas as pd

from analysis.frames import Study, groups
from analysis.statistics import Interval, t_interval
from analysis.targets import final_values, times_to_target

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
LEAST = 3
"""Replicates below which nothing is decided."""
COLUMNS = ["claim", "says", "verdict", "measured", "replicates", "why"]


def evaluate(study: Study) -> pd.DataFrame:
    """Returns a row per claim of the study's scenario.

    Replicates share their randomness between variants, so differences are paired.

    Returns:
        Columns claim, says, verdict (holds, does not hold, undecided), measured,
        replicates, why.
    """
    rows = [
        _row(study, claim) for claim in study.manifest["scenario"].get("claims", [])
    ]
    return pd.DataFrame(rows, columns=pd.Index(COLUMNS))


def _row(study: Study, claim: dict[str, Any]) -> tuple[Any, ...]:
    kind = next(k for k in ("faster", "higher", "close") if claim.get(k))
    text = f"{claim[kind]} {_WORDS[kind]} {claim['than']}"
    known = groups(study)
    for group in (claim[kind], claim["than"]):
        if group not in known:
            why = f"the study has no finished runs of {group!r}"
            return (text, claim["says"], OPEN, "", 0, why)
    judge = {"faster": _faster, "higher": _higher, "close": _close}[kind]
    text, verdict, measured, replicates, why = judge(study, claim, text)
    if replicates < LEAST:
        verdict, why = OPEN, f"needs at least {LEAST} replicates"
    return (text, claim["says"], verdict, measured, replicates, why)


_WORDS = {"faster": "faster than", "higher": "higher than", "close": "as good as"}


def _faster(study: Study, claim: dict[str, Any], text: str) -> tuple[Any, ...]:
    """Judges the ratio of times to a target, replicate by replicate.

    A replicate in which one side did not reach the target bounds the ratio from one
    side; it counts with that bound where the bound speaks against the claim or for it
    without help, and otherwise leaves the claim undecided.
    """
    metric, value = next(iter(claim["to"].items()))
    text += f" to {metric} {value:g}"
    times = times_to_target(study, metric, value)
    fast, slow = (_by_replicate(times, claim[k]) for k in ("faster", "than"))
    both = fast.join(slow, lsuffix="_fast", rsuffix="_slow", how="inner")
    n = len(both)
    all_fast = bool(both["reached_fast"].all())
    all_slow = bool(both["reached_slow"].all())
    reached = (
        f"reached {both['reached_fast'].sum()}/{n} and {both['reached_slow'].sum()}/{n}"
    )
    if not all_fast and not all_slow:
        return text, OPEN, reached, n, "neither side always reached the target"
    ratio = both["time_slow"].to_numpy() / both["time_fast"].to_numpy()
    interval = Interval(*np.exp(t_interval(np.log(ratio))))
    least = claim.get("by_at_least", 1.0)
    measured = f"times faster: {interval}; {reached}"
    if not all_slow:  # true ratios are larger still
        verdict = HOLDS if interval.low > least else OPEN
        return (
            text,
            verdict,
            measured,
            n,
            "ratio is a lower bound: the slower is censored",
        )
    if not all_fast:  # true ratios are smaller still
        verdict = FAILS if interval.high < least else OPEN
        return (
            text,
            verdict,
            measured,
            n,
            "ratio is an upper bound: the faster is censored",
        )
    return text, _side(interval, least), measured, n, f"ratio against {least:g}"


def _higher(study: Study, claim: dict[str, Any], text: str) -> tuple[Any, ...]:
    metric = claim["metric"]
    difference = _difference(study, metric, claim["higher"], claim["than"])
    interval = t_interval(difference)
    verdict = _side(interval, 0.0)
    measured = f"difference of {metric}: {interval}"
    return (
        text + f" in {metric}",
        verdict,
        measured,
        difference.size,
        "difference against 0",
    )


def _close(study: Study, claim: dict[str, Any], text: str) -> tuple[Any, ...]:
    metric, within = claim["metric"], claim["within"]
    difference = _difference(study, metric, claim["close"], claim["than"])
    interval = t_interval(difference)
    verdict = OPEN
    if abs(interval.low) <= within and abs(interval.high) <= within:
        verdict = HOLDS
    elif interval.low > within or interval.high < -within:
        verdict = FAILS
    measured = f"difference of {metric}: {interval}"
    why = f"whole interval within {within:g}, or outside"
    return text + f" in {metric} to {within:g}", verdict, measured, difference.size, why


def _side(interval: Interval, border: float) -> str:
    """Says on which side of a border an interval lies, if on one."""
    if interval.low > border:
        return HOLDS
    return FAILS if interval.high < border else OPEN


def _by_replicate(times: pd.DataFrame, group: str) -> pd.DataFrame:
    mine = times.loc[times["group"] == group, ["replicate", "time", "reached"]]
    return mine.set_index("replicate")


def _difference(study: Study, metric: str, one: str, other: str) -> np.ndarray:
    finals = final_values(study, metric).pivot_table(
        index="replicate", columns="group", values="value"
    )
    return (finals[one] - finals[other]).dropna().to_numpy()
