"""A row per claim of a study, at each point of its sweep that it is about."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd

from analysis.claims.finals import close, higher, ratio, value
from analysis.claims.judged import LEAST, NOTHING, OPEN, Judged
from analysis.claims.slopes import slope
from analysis.claims.speed import faster, fewer
from analysis.claims.sweeps import monotone, steady
from analysis.frames import Study, runs
from simulator.trace import StudyError

JUDGES: dict[str, Any] = {
    "faster": faster,
    "fewer": fewer,
    "higher": higher,
    "close": close,
    "ratio": ratio,
    "value": value,
    "slope": slope,
    "monotone": monotone,
    "steady": steady,
}
ALONG = ("monotone", "steady")
"""Kinds that are about a whole sweep, not about each of its points."""
WORDS = {
    "faster": " faster than ",
    "fewer": " in fewer commits than ",
    "higher": " higher than ",
    "close": " as good as ",
    "ratio": " against ",
}
"""What stands between the variants of a claim."""


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


def evaluate(study: Study) -> pd.DataFrame:
    """Returns a row per claim of the study's scenario.

    Replicates share their randomness between variants, so differences are paired. A
    claim on variants of a sweep is judged at each of its points.

    - `faster`: geometric mean of the ratios of times to the target, or of what else is
      counted until then. Holds if its interval lies above `by_at_least`, does not hold
      if it lies below.
    - `fewer`: the same of the commits at which runs stopped at their target.
    - `higher`: mean difference of final values. Holds if its interval lies above zero,
      does not hold if it lies below.
    - `close`: the same difference. Holds if its whole interval is within `within` of
      zero, does not hold if it is wholly outside.
    - `ratio`: geometric mean of the ratios of final values, or of what else runs came
      to. Holds if its whole interval is within `within` of `is`, does not hold if it is
      wholly outside.
    - `value`: the same of the mean final value.
    - `slope`: mean exponent with which the metric falls with the commits, of one
      variant over its last decade, of several by their means over all commits. What
      theorems bound may fall faster than they say: holds if the interval lies at or
      below `is` + `within`, does not hold if it lies above.
    - `monotone`: of each replicate the slope of its final values over the ranks of the
      swept values. Rising holds if the interval of the mean slope lies above zero and
      no step from one swept value to the next goes down significantly; it does not hold
      if the slope lies below zero or a step goes down. Falling is its mirror image.
    - `steady`: the differences of final values between all pairs of swept values. Holds
      if every interval lies within `within`, does not hold if one lies outside.

    Everything else, and anything on fewer than three pairs or replicates, is undecided.

    Returns:
        A column per attribute of `Finding`.
    """
    rows = [
        finding
        for claim in study.manifest["scenario"].get("claims", [])
        for finding in _findings(study, _renamed(claim))
    ]
    return pd.DataFrame(rows, columns=pd.Index(Finding._fields))


def _renamed(claim: dict[str, Any]) -> dict[str, Any]:
    """Returns a claim of an older study as it is written today."""
    return claim | {"monotone": claim["rises"]} if claim.get("rises") else claim


def _findings(study: Study, claim: dict[str, Any]) -> Iterator[Finding]:
    """Yields a claim's findings: one, or one for each point of a sweep."""
    kind = next(kind for kind in JUDGES if claim.get(kind) is not None)
    named = _named(claim, kind)
    points = _points(study, named)
    if kind in ALONG:
        points = [named] if named[0] in set(runs(study)["variant"]) else []
    for names in points or [named]:
        text, says = WORDS.get(kind, ", ").join(names), claim["says"]
        if not points:
            why = f"the study has no finished runs of {_missing(study, *names)}"
            yield _open(text, says, why)
            continue
        try:
            judged: Judged = JUDGES[kind](study, claim, *names)
        except StudyError as error:  # the metric was not evaluated
            yield _open(text, says, str(error))
            continue
        verdict, replicates, why = judged.verdict, judged.replicates, judged.why
        if replicates < LEAST:
            verdict, why = OPEN, f"needs at least {LEAST} replicates; {why}"
        asked = study.manifest["scenario"].get("replicates", replicates)
        if replicates < asked:
            used = "measured" if kind in ("slope", "value") else "compared"
            why += f"; {replicates} of {asked} replicates can be {used}"
        text, measured = text + judged.to, judged.measured
        yield Finding(text, says, verdict, measured, *judged.interval, replicates, why)


def _open(text: str, says: str, why: str) -> Finding:
    """Returns the finding where nothing could be measured."""
    return Finding(text, says, OPEN, "", *NOTHING, 0, why)


def _named(claim: dict[str, Any], kind: str) -> tuple[str, ...]:
    """Returns the variants that a claim names."""
    if kind in WORDS:
        return claim[kind], claim["than"]
    names = claim[kind]
    return (names,) if isinstance(names, str) else tuple(names)


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
