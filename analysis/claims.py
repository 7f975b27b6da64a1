"""Whether what a source says holds here: differences and rates, and a verdict."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.curves import decade_slopes, horizon_slopes
from analysis.frames import Study, evaluations, runs
from analysis.statistics import Interval, paired_t_interval, t_interval
from analysis.targets import final_values, times_to_target
from simulator.trace import StudyError

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
LEAST = 3
"""Replicates below which nothing is decided."""
NOTHING = Interval(float("nan"), float("nan"), float("nan"))


class Finding(NamedTuple):
    """What a study says of a claim.

    Attributes:
        claim: in words.
        says: where the source claims it.
        verdict: holds, does not hold or undecided.
        measured: the numbers below in words; empty if nothing could be measured.
        estimate: mean over replicates or their pairs; NaN if there is none.
        low: of its 95 % interval.
        high: of its 95 % interval.
        replicates: that were measured, or pairs that were compared.
        why: what the verdict rests on.
    """

    claim: str
    says: str
    verdict: str
    measured: str
    estimate: float
    low: float
    high: float
    replicates: int
    why: str


class _Judged(NamedTuple):
    """A verdict on groups; the words that complete the claim come first."""

    to: str
    verdict: str
    measured: str
    interval: Interval
    replicates: int
    why: str


def evaluate(study: Study) -> pd.DataFrame:
    """Returns a row per claim of the study's scenario.

    Replicates share their randomness between variants, so differences are paired. A
    claim on variants of a sweep is judged at each of its points.

    - `faster`: geometric mean of the ratios of times to the target, or of what else is
      counted until then. Holds if its
      interval lies above `by_at_least`, does not hold if it lies below.
    - `fewer`: the same of the commits at which runs stopped at their target.
    - `higher`: mean difference of final values. Holds if its interval lies above zero,
      does not hold if it lies below.
    - `close`: the same difference. Holds if its whole interval is within `within` of
      zero, does not hold if it is wholly outside.
    - `slope`: mean exponent with which the metric falls with the commits, of one
      variant over its last decade, of several by their means over all commits. What
      theorems bound may fall faster than they say: holds if the interval lies at or
      below `is` + `within`, does not hold if it lies above.

    - `rises`: of each replicate the slope of its final values over the ranks of the
      swept values. Holds if the interval of the mean slope lies above zero and no step
      from one swept value to the next goes down significantly; does not hold if the
      slope lies below zero or a step goes down.
    - `steady`: the differences of final values between all pairs of swept values. Holds
      if every interval lies within `within`, does not hold if one lies outside.

    Everything else, and anything on fewer than three pairs or replicates, is undecided.

    Returns:
        A column per attribute of `Finding`.
    """
    rows = [
        finding
        for claim in study.manifest["scenario"].get("claims", [])
        for finding in _findings(study, claim)
    ]
    return pd.DataFrame(rows, columns=pd.Index(Finding._fields))


_WORDS = {
    "faster": "faster than",
    "fewer": "in fewer commits than",
    "higher": "higher than",
    "close": "as good as",
}


def _findings(study: Study, claim: dict[str, Any]) -> Iterator[Finding]:
    """Yields a claim's findings: one, or one for each point of a sweep."""
    kind, judge, named = _kind(claim)
    points = _points(study, named)
    if kind in ("rises", "steady"):
        points = [named] if named[0] in set(runs(study)["variant"]) else []
    for names in points or [named]:
        joint = f" {_WORDS[kind]} " if kind in _WORDS else ", "
        text, says = joint.join(names), claim["says"]
        if not points:
            why = f"the study has no finished runs of {_missing(study, *names)}"
            yield Finding(text, says, OPEN, "", *NOTHING, 0, why)
            continue
        try:
            judged = judge(study, claim, *names)
        except StudyError as error:  # the metric was not evaluated
            yield Finding(text, says, OPEN, "", *NOTHING, 0, str(error))
            continue
        to, verdict, measured, interval, replicates, why = judged
        if replicates < LEAST:
            verdict, why = OPEN, f"needs at least {LEAST} replicates; {why}"
        asked = study.manifest["scenario"].get("replicates", replicates)
        if replicates < asked:
            used = "measured" if kind == "slope" else "compared"
            why += f"; {replicates} of {asked} replicates can be {used}"
        text += to
        yield Finding(text, says, verdict, measured, *interval, replicates, why)


def _kind(claim: dict[str, Any]) -> tuple[str, Callable[..., _Judged], tuple[str, ...]]:
    """Returns a claim's kind, what judges it, and the variants that it names."""
    slope = claim.get("slope")
    if slope is not None:
        return "slope", _slope, (slope,) if isinstance(slope, str) else tuple(slope)
    for kind, judge in (("rises", _rises), ("steady", _steady)):
        if claim.get(kind) is not None:
            return kind, judge, (claim[kind],)
    kind = next(k for k in _WORDS if claim.get(k) is not None)
    judges = {"faster": _faster, "fewer": _fewer, "higher": _higher, "close": _close}
    return kind, judges[kind], (claim[kind], claim["than"])


def _points(study: Study, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Returns the groups that a claim is about: as named, or at each swept point.

    A variant that is not swept is compared at every point of the others.
    """
    table = runs(study)
    if set(names) <= set(table["group"]):
        return [names]
    points: dict[str, dict[str, str]] = {name: {} for name in names}
    for variant, group in zip(table["variant"], table["group"], strict=True):
        if variant in points:
            points[variant][group.removeprefix(variant)] = group
    swept = [name for name in names if "" not in points[name]] or [names[0]]
    return [
        tuple(points[name].get(point, points[name].get("", "")) for name in names)
        for point in points[swept[0]]
        if all(point in points[name] or "" in points[name] for name in names)
    ]


def _missing(study: Study, *names: str) -> str:
    """Returns which variants are not there; or says that no point is common."""
    table = runs(study)
    known = {*table["variant"], *table["group"]}
    missing = [repr(name) for name in names if name not in known]
    return " and ".join(missing) or f"{' and '.join(names)} at a common point"


def _faster(study: Study, claim: dict[str, Any], one: str, other: str) -> _Judged:
    """Judges the ratio of times to a target, replicate by replicate.

    A replicate in which one side did not reach the target bounds its ratio from one
    side. The mean of such bounds bounds the mean ratio, so they can speak for a claim
    (the slower did not arrive) or against it (the faster did not).
    """
    ((metric, value),) = claim["to"].items()
    counted = claim.get("counted_in", "time")
    if counted == "rounds":
        _check_rounds(study, one, other)
    times = times_to_target(study, metric, value, counted)
    less = {"time": "faster", "computation_s": "less computation"}
    less["communication_s"] = "less communication"
    words = f"times {less.get(counted, f'fewer {counted}')}"
    return _ratio(claim, one, other, times, f" to {metric} {value:g}", words)


def _check_rounds(study: Study, *names: str) -> None:
    """Refuses groups whose protocol has no rounds.

    Raises:
        StudyError: naming one.
    """
    table = evaluations(study)
    for name in names:
        mine = table.loc[table["group"] == name, "rounds"]
        if len(mine) and mine.isna().all():
            raise StudyError(f"the protocol of {name} has no rounds to be counted")


def _fewer(study: Study, claim: dict[str, Any], one: str, other: str) -> _Judged:
    """Judges the ratio of commits until runs stopped at their target."""
    found = runs(study)
    counts = found[["group", "replicate"]].assign(
        time=found["commits"].astype(float), reached=found["stop"] == "target"
    )
    return _ratio(claim, one, other, counts, " to the target", "times fewer commits")


def _ratio(
    claim: dict[str, Any],
    one: str,
    other: str,
    times: pd.DataFrame,
    to: str,
    words: str,
) -> _Judged:
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
        return _Judged(to, OPEN, reached, NOTHING, n, why)
    times_fast, times_slow = (
        both[f"time_{k}"].to_numpy(np.float64) for k in ("fast", "slow")
    )
    if not (times_fast.all() and times_slow.all()):
        why = "the target was reached before anything was learned"
        return _Judged(to, OPEN, reached, NOTHING, n, why)
    ratios = paired_t_interval(np.log(times_slow), np.log(times_fast))
    interval = Interval(*(float(end) for end in np.exp(ratios)))
    verdict, why = _side(interval, least), f"ratio against {least:g}"
    if not did_slow.all():
        verdict = verdict if verdict == HOLDS else OPEN
        why = f"ratio is a lower bound: {other} is censored"
    elif not did_fast.all():
        verdict = verdict if verdict == FAILS else OPEN
        why = f"ratio is an upper bound: {one} is censored"
    measured = f"{words}: {interval}; {reached}"
    return _Judged(to, verdict, measured, interval, n, why)


def _higher(study: Study, claim: dict[str, Any], one: str, other: str) -> _Judged:
    """Judges the difference of final values, whether more of them is good or not."""
    metric = claim["metric"]
    interval, n, lost = _difference(study, metric, one, other)
    measured = f"difference of {metric}: {interval}"
    verdict, why = _side(interval, 0.0), f"difference against 0{lost}"
    return _Judged(f" in {metric}", verdict, measured, interval, n, why)


def _close(study: Study, claim: dict[str, Any], one: str, other: str) -> _Judged:
    """Judges whether final values are equivalent, which is more than not different."""
    metric, within = claim["metric"], claim["within"]
    interval, n, lost = _difference(study, metric, one, other)
    verdict = OPEN
    if -within <= interval.low and interval.high <= within:
        verdict = HOLDS
    elif interval.low > within or interval.high < -within:
        verdict = FAILS
    measured = f"difference of {metric}: {interval}"
    why = f"whole interval within {within:g}, or outside{lost}"
    return _Judged(f" in {metric} to {within:g}", verdict, measured, interval, n, why)


def _rises(study: Study, claim: dict[str, Any], name: str) -> _Judged:
    """Judges whether final values grow along a sweep."""
    metric, over = claim["metric"], claim["over"]
    values = _along(study, metric, over, name)
    to = f": {metric} rises with {over}"
    if values.shape[1] < 2:
        return _Judged(to, OPEN, "", NOTHING, 0, f"{over} has fewer than two values")
    ranks = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    interval = t_interval(values.to_numpy(np.float64) @ ranks / (ranks @ ranks))
    steps = [t_interval(step) for step in np.diff(values.to_numpy(np.float64)).T]
    down = [
        f"{values.columns[i]} to {values.columns[i + 1]}"
        for i, step in enumerate(steps)
        if step.high < 0
    ]
    verdict = _side(interval, 0.0)
    if down:
        verdict = FAILS
    measured = f"per swept value: {interval}"
    why = f"goes down from {', '.join(down)}" if down else "slope over ranks against 0"
    return _Judged(to, verdict, measured, interval, len(values), why)


def _steady(study: Study, claim: dict[str, Any], name: str) -> _Judged:
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
        return _Judged(to, OPEN, "", NOTHING, 0, f"{over} has fewer than two values")
    worst = max(pairs, key=lambda pair: abs(pair.mean))
    verdict = OPEN
    if all(-within <= pair.low and pair.high <= within for pair in pairs):
        verdict = HOLDS
    elif any(pair.low > within or pair.high < -within for pair in pairs):
        verdict = FAILS
    measured = f"largest difference: {worst}"
    why = f"intervals of all pairs within {within:g}, or one outside"
    return _Judged(to, verdict, measured, worst, len(values), why)


def _along(study: Study, metric: str, over: str, name: str) -> pd.DataFrame:
    """Returns final values, a row per replicate and a column per swept value.

    Raises:
        StudyError: the key is not swept, or others are as well.
    """
    table = runs(study)
    mine = table.loc[table["variant"] == name]
    if over not in mine or mine[over].isna().all():
        raise StudyError(f"{over} is not swept for {name}")
    finals = final_values(study, metric)
    joined = mine[["group", "replicate", over]].merge(finals, on=["group", "replicate"])
    if joined.duplicated(["replicate", over]).any():
        raise StudyError(f"more than {over} is swept for {name}")
    values = joined.pivot_table(
        index="replicate", columns=over, values="value", dropna=False
    )
    return values.dropna()


def _slope(study: Study, claim: dict[str, Any], *names: str) -> _Judged:
    """Judges whether a metric falls at least as steeply as a bound on it."""
    metric, border = claim["metric"], claim["is"] + claim["within"]
    if len(names) == 1:
        of, slopes = metric, decade_slopes(study, *names, metric)
    else:
        of, slopes = f"mean {metric}", horizon_slopes(study, names, metric)
    known = slopes.dropna().to_numpy(np.float64)
    interval = t_interval(known)
    verdict = OPEN
    if interval.high <= border:
        verdict = HOLDS
    elif interval.low > border:
        verdict = FAILS
    to = f": slope of {of} at most {claim['is']:g} to {claim['within']:g}"
    measured = f"slope: {interval}" if known.size else ""
    why = f"slope against {border:g}"
    if known.size < slopes.size:
        why += f"; {slopes.size - known.size} replicates without a slope"
    return _Judged(to, verdict, measured, interval, known.size, why)


def _side(interval: Interval, border: float) -> str:
    """Says on which side of a border an interval lies, if on one."""
    if interval.low > border:
        return HOLDS
    return FAILS if interval.high < border else OPEN


def _by_replicate(times: pd.DataFrame, group: str) -> pd.DataFrame:
    mine = times.loc[times["group"] == group, ["replicate", "time", "reached"]]
    return mine.set_index("replicate")


def _difference(
    study: Study, metric: str, one: str, other: str
) -> tuple[Interval, int, str]:
    """Returns the mean difference of final values, its pairs, and who has none."""
    finals = final_values(study, metric)
    first, second = (
        finals.loc[finals["group"] == group].set_index("replicate")["value"]
        for group in (one, other)
    )
    differences = (first - second).dropna().to_numpy(np.float64)
    lost = "".join(
        f"; {int(values.isna().sum())} of {group} without a final value"
        for group, values in ((one, first), (other, second))
        if values.isna().any()
    )
    return t_interval(differences), differences.size, lost
