"""Claims on what happens along a sweep: `monotone` and `steady`."""

from itertools import combinations
from typing import Any

import numpy as np

from analysis import bounds
from analysis.claims.judged import NONE, NOTHING, Evidence, Judged, near, side
from analysis.claims.measured import Measured, final
from analysis.frames import short
from analysis.statistics import LEVEL
from simulator.trace import StudyError

WORDS = {"rising": ("rises", "down"), "falling": ("falls", "up")}
"""How a direction is said, and where a step goes that is against it."""


def monotone(measured: Measured, claim: dict[str, Any], *groups: str) -> Judged:
    """Judges whether final values grow along a sweep, or whether they fall.

    For it speaks the slope over the ranks of the swept values; against it do the slope
    and each step that goes the other way, by Bonferroni's correction. While a step does
    so significantly, nothing speaks for it.
    """
    metric, over = claim["metric"], claim["over"]
    direction = claim.get("direction", "rising")
    sign = 1.0 if direction == "rising" else -1.0
    verb, against = WORDS[direction]
    names, values, ends, missing = _along(measured, claim, groups)
    to = f": {metric} {verb} with {over}"
    n, k = values.shape
    if k < 2:
        return Judged(to, NONE, "", NOTHING, 0, f"{over} has fewer than two values")
    ranks = np.arange(k) - (k - 1) / 2
    slopes = bounds.contrast(values, ends, ranks / (ranks @ ranks))
    trend = side(slopes if sign > 0 else bounds.mirrored(slopes), 0.0)
    steps = [
        side(bounds.contrast(values, ends, sign * step), 0.0)
        for step in np.diff(np.eye(k), axis=0)
    ]
    chances = [step.against for step in steps]
    chances += [trend.against] if k > 2 else []  # two values have one step
    contrary = min(1.0, len(chances) * min(chances))
    refuted = contrary <= (1 - LEVEL) / 2
    evidence = Evidence(1.0 if refuted else trend.for_it, contrary)
    interval = NOTHING if slopes.open else bounds.interval(slopes)
    why = f"slope over ranks against 0{missing}"
    wrong = [
        f"{names[i]} to {names[i + 1]}"
        for i, step in enumerate(steps)
        if step.against * len(chances) <= (1 - LEVEL) / 2
    ]
    if wrong:
        why = f"goes {against} from {', '.join(wrong)}{missing}"
    return Judged(to, evidence, f"per swept value: {interval}", interval, n, why)


def steady(measured: Measured, claim: dict[str, Any], *groups: str) -> Judged:
    """Judges whether final values stay the same along a sweep.

    All pairs must be near each other for it; against it speaks each that is not, by
    Bonferroni's correction.
    """
    metric, over, within = claim["metric"], claim["over"], claim["within"]
    _, values, ends, missing = _along(measured, claim, groups)
    to = f": {metric} the same for all {over}, to {within:g}"
    n, k = values.shape
    if k < 2:
        return Judged(to, NONE, "", NOTHING, 0, f"{over} has fewer than two values")
    unit = np.eye(k)
    pairs = [
        bounds.contrast(values, ends, unit[j] - unit[i])
        for i, j in combinations(range(k), 2)
    ]
    judged = [near(pair, -within, within) for pair in pairs]
    evidence = Evidence(
        max(pair.for_it for pair in judged),
        min(1.0, len(judged) * min(pair.against for pair in judged)),
    )
    intervals = [NOTHING if pair.open else bounds.interval(pair) for pair in pairs]
    worst = max(intervals, key=lambda pair: np.nan_to_num(abs(pair.mean), nan=np.inf))
    words = f"largest difference: {worst}"
    why = f"intervals of all pairs within {within:g}, or one outside{missing}"
    return Judged(to, evidence, words, worst, n, why)


def _along(
    measured: Measured, claim: dict[str, Any], groups: tuple[str, ...]
) -> tuple[list[Any], np.ndarray, np.ndarray, str]:
    """Returns final values along a sweep.

    Returns:
        The swept values, numbers in their order and words in that of the sweep; final
        values and what they say, `[replicates, swept values]`, of the replicates that
        have all of them; and words on those that have not.

    Raises:
        StudyError: the key is not swept, or others are as well.
    """
    metric, over = claim["metric"], claim["over"]
    at: dict[Any, str] = {}
    for group in groups:
        parameters = measured.parameters(group)
        if over not in parameters:
            raise StudyError(f"{over} is not swept for {_variant(claim)}")
        value = short(parameters[over])
        if value in at:
            raise StudyError(f"more than {over} is swept for {_variant(claim)}")
        at[value] = group
    numbers = all(isinstance(value, int | float) for value in at)
    names = sorted(at) if numbers else list(at)
    columns = [measured.of(final(metric), at[name]) for name in names]
    every = sorted(set().union(*(set(column.replicates) for column in columns)))
    if all(column.diverged.all() for column in columns):
        raise StudyError(f"all runs of {_variant(claim)} diverged")
    values = np.full((len(every), len(names)), np.nan)
    ends = np.zeros((len(every), len(names)), np.int8)
    for place, column in enumerate(columns):
        rows = np.searchsorted(every, column.replicates)
        values[rows, place], ends[rows, place] = column.values, column.bounds
    whole = ~np.isnan(values).any(axis=1)
    missing = int((~whole).sum())
    said = f"; {missing} replicates without a final value at some {over}"
    lost = sum(int(column.diverged.sum()) for column in columns)
    words = f"; {lost} runs diverged and count as the worst value" if lost else ""
    return names, values[whole], ends[whole], words + (said if missing else "")


def _variant(claim: dict[str, Any]) -> str:
    """Returns the variant that a claim along a sweep is about."""
    return claim.get("monotone") or claim["steady"]
