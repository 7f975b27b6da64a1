"""Claims that one variant stands larger values of a swept number than another."""

import numpy as np

from ...simulator.claims.critical import Critical
from ...simulator.trace import StudyError
from .. import bounds
from .final_values import DIFFERENCE
from .measured import Measured, Numbers, final, together
from .sweeps import swept
from .verdict import Judged, judged, side


def judge(measured: Measured, claim: Critical, *groups: str) -> Judged:
    """Judges the ratio of two critical values, replicate by replicate.

    The median of the ratios counts, against `by_at_least`. A critical value lies
    between the largest swept one that is critical and the next, or beyond the sweep.

    Raises:
        StudyError: The key is not swept over numbers above 0, or others are as well.
    """
    one, other, over = claim.critical, claim.than, claim.over
    sides = [_values(measured, claim, name, groups) for name in (one, other)]
    sample = bounds.contrast(bounds.logarithm(together(*sides)), DIFFERENCE)
    to = f" in {over}, within {claim.within:g} of the best"
    if claim.by_at_least != 1:
        to += f", {claim.by_at_least:g} times"
    why = f"ratio against {claim.by_at_least:g}, known to the swept values"
    if not sample.low.size:
        return judged(to, "", sample, side(sample, 0.0), "no replicate has all values")
    if lost := sum(int(numbers.diverged.sum()) for numbers in sides):
        why += f"; {lost} replicates in which all swept values diverged"
    if (np.isinf(sample.low) & np.isinf(sample.high)).all():
        why = "both sides have critical values beyond the sweep; widen it"
    found = [
        _said(name, side_) for name, side_ in zip((one, other), sides, strict=True)
    ]
    words = f"critical {over}: {' and '.join(found)}; ratio"
    evidence = side(sample, float(np.log(claim.by_at_least)))
    return judged(to, words, sample, evidence, why, logs=True)


def _said(name: str, numbers: Numbers) -> str:
    """Returns between which swept values critical ones lie."""
    low, high = numbers.low.min(), numbers.high.max()
    return f"{name} {low:g} to {high:g}" if np.isfinite(high) else f"{name} >= {low:g}"


def _values(
    measured: Measured, claim: Critical, variant: str, groups: tuple[str, ...]
) -> Numbers:
    """Returns the critical value of each replicate that has all final values.

    Its `diverged` says whether all of the replicate's runs did.
    """
    mine = [group for group in groups if group in measured.groups(variant)]
    at = swept(measured, claim.over, variant, mine)
    if not all(isinstance(value, int | float) and value > 0 for value in at):
        raise StudyError(f"{claim.over} is not swept over numbers above 0")
    columns = [measured.of(final(claim.metric), at[value]) for value in sorted(at)]
    common = sorted(set.intersection(*(set(c.replicates.tolist()) for c in columns)))
    rows = [np.searchsorted(column.replicates, common) for column in columns]
    pairs = list(zip(columns, rows, strict=True))
    values = np.column_stack([column.low[these] for column, these in pairs])
    lost = np.column_stack([column.diverged[these] for column, these in pairs])
    better = values if measured.metric(claim.metric).higher_is_better else -values
    known = np.all(lost | ~np.isnan(values), axis=1)
    better = np.where(lost | np.isnan(values), -np.inf, better)
    best = better.max(axis=1, keepdims=True)
    slack = 1e-12 * (1 + claim.within)
    stands = ~lost & (better >= best - claim.within - slack)
    # Before the sweep lies 0, after it no end.
    places = np.array([0.0, *sorted(at), np.inf])
    largest = np.where(stands, np.arange(1, len(at) + 1), 0).max(axis=1)
    return Numbers(
        np.array(common, np.int64)[known],
        places[largest][known],
        places[largest + 1][known],
        np.all(lost, axis=1)[known],
    )
