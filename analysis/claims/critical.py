"""Claims that one variant stands larger values of a swept number than another."""

import numpy as np

from analysis import bounds
from analysis.bounds import AT_LEAST, AT_MOST, EXACT
from analysis.claims.measured import Measured, Numbers, final
from analysis.claims.sweeps import swept
from analysis.claims.verdict import NONE, NOTHING, Evidence, Judged, side
from analysis.statistics import Interval
from simulator.claims.critical import Critical
from simulator.trace import StudyError


def judge(measured: Measured, claim: Critical, *groups: str) -> Judged:
    """Judges the ratio of two critical values, replicate by replicate.

    The geometric mean of the ratios counts, against `by_at_least`. Where the largest
    swept value is not critical, the critical one is at least that; where all runs of a
    replicate diverged, it is at most the smallest. Critical values are few different
    numbers, and replicates may agree on one: no p-value is less than 2 ** -n, the
    chance that n replicates all favour one of two variants that are alike.

    Raises:
        StudyError: The key is not swept over numbers above 0, or others are as well.
    """
    one, other, over = claim.critical, claim.than, claim.over
    sides = [_values(measured, claim, name, groups) for name in (one, other)]
    common, *rows = np.intersect1d(
        sides[0].replicates, sides[1].replicates, return_indices=True
    )
    first, second = (
        Numbers(*(column[these] for column in numbers))
        for numbers, these in zip(sides, rows, strict=True)
    )
    to = f" in {over}, within {claim.within:g} of the best"
    if claim.by_at_least != 1:
        to += f", {claim.by_at_least:g} times"
    n = common.size
    if n == 0:
        return Judged(to, NONE, "", NOTHING, 0, "no replicate has all final values")
    sample = bounds.difference(
        np.log(first.values), np.log(second.values), first.bounds, second.bounds
    )
    found = [_said(name, side) for name, side in ((one, first), (other, second))]
    words = f"critical {over}: {' and '.join(found)}"
    border = float(np.log(claim.by_at_least))
    if sample.open:
        why = "both sides have critical values beyond the sweep; widen it"
        return Judged(to, NONE, words, NOTHING, n, why)
    tested = side(sample._replace(chance=1.0), border)
    least = 0.5**n
    evidence = Evidence(*(max(p, least) for p in tested))
    interval = Interval(*(float(end) for end in np.exp(bounds.interval(sample))))
    why = f"ratio against {claim.by_at_least:g}, known to the swept values"
    lost = sum(int(numbers.diverged.sum()) for numbers in (first, second))
    if lost:
        why += f"; {lost} replicates in which all swept values diverged"
    return Judged(to, evidence, f"{words}; ratio: {interval}", interval, n, why)


def _said(name: str, numbers: Numbers) -> str:
    """Returns the geometric mean of critical values, and the smallest and largest."""
    mean = float(np.exp(np.log(numbers.values).mean()))
    ends = (numbers.values.min(), numbers.values.max())
    sign = ">= " if (numbers.bounds == AT_LEAST).any() else ""
    return f"{name} {sign}{mean:.3g} ({ends[0]:g} to {ends[1]:g})"


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
    places = np.array(sorted(at), float)
    columns = [measured.of(final(claim.metric), at[value]) for value in sorted(at)]
    common = sorted(set.intersection(*(set(c.replicates.tolist()) for c in columns)))
    rows = [np.searchsorted(column.replicates, common) for column in columns]
    pairs = list(zip(columns, rows, strict=True))
    values = np.column_stack([column.values[these] for column, these in pairs])
    lost = np.column_stack([column.diverged[these] for column, these in pairs])
    better = values if measured.metric(claim.metric).higher_is_better else -values
    known = np.all(lost | ~np.isnan(values), axis=1)
    better = np.where(lost | np.isnan(values), -np.inf, better)
    best = better.max(axis=1, keepdims=True)
    slack = 1e-12 * (1 + claim.within)
    stands = ~lost & (better >= best - claim.within - slack)
    none = np.all(lost, axis=1)
    largest = stands.shape[1] - 1 - np.argmax(stands[:, ::-1], axis=1)
    largest[none] = 0
    meaning = np.where(largest == stands.shape[1] - 1, AT_LEAST, EXACT)
    meaning = np.where(none, AT_MOST, meaning)
    return Numbers(
        np.array(common)[known], places[largest][known], meaning[known], none[known]
    )
