"""Claims on how runs end: `higher`, `no_worse`, `close`, `ratio` and `value`."""

from typing import Any

import numpy as np

from analysis import bounds
from analysis.bounds import AT_LEAST, AT_MOST, EXACT, Sample
from analysis.claims.judged import NONE, NOTHING, Judged, near, side
from analysis.claims.measured import Measured, Numbers, end, final
from analysis.statistics import Interval
from simulator.scenario.metrics import HIGHER_IS_BETTER, WORST

COUNTED = {EXACT: "counted as", AT_LEAST: "at least", AT_MOST: "at most"}
"""What the number of a run that diverged is."""


def higher(measured: Measured, claim: dict[str, Any], one: str, other: str) -> Judged:
    """Judges the difference of final values, whether more of them is good or not."""
    metric = claim["metric"]
    sample, said = _difference(measured, metric, one, other)
    why = f"difference against 0{said}"
    evidence = side(sample, 0.0)
    return _judged(f" in {metric}", f"difference of {metric}", sample, evidence, why)


def no_worse(measured: Measured, claim: dict[str, Any], one: str, other: str) -> Judged:
    """Judges whether final values are worse by less than so much, if they are."""
    metric, within = claim["metric"], claim["within"]
    sample, said = _difference(measured, metric, one, other)
    rising = metric in HIGHER_IS_BETTER
    better = sample if rising else bounds.mirrored(sample)
    why = f"difference against {-within if rising else within:g}{said}"
    evidence = side(better, -within)
    to = f" in {metric} to {within:g}"
    return _judged(to, f"difference of {metric}", sample, evidence, why)


def close(measured: Measured, claim: dict[str, Any], one: str, other: str) -> Judged:
    """Judges whether final values are equivalent, which is more than not different."""
    metric, within = claim["metric"], claim["within"]
    sample, said = _difference(measured, metric, one, other)
    evidence = near(sample, -within, within)
    why = f"whole interval within {within:g}, or outside{said}"
    to = f" in {metric} to {within:g}"
    return _judged(to, f"difference of {metric}", sample, evidence, why)


def ratio(measured: Measured, claim: dict[str, Any], one: str, other: str) -> Judged:
    """Judges whether what one side came to is so many times what the other did.

    The ratio is the geometric mean over pairs of replicates.
    """
    of, expected, within = claim["of"], claim["is"], claim["within"]
    sides = [measured.of(end(of), group) for group in (one, other)]
    sides = [_positive(side, sides, of) for side in sides]
    said = _said(sides[0], one) + _said(sides[1], other)
    first, second = _paired(*sides)
    to = f": ratio of {of} is {expected:g} to {within:g}"
    if not ((first.values > 0).all() and (second.values > 0).all()):
        why = f"a ratio needs {of} > 0 on both sides{said}"
        return Judged(to, NONE, "", NOTHING, first.values.size, why)
    sample = bounds.difference(
        np.log(first.values), np.log(second.values), first.bounds, second.bounds
    )
    lowest = np.log(expected - within) if expected > within else -np.inf
    evidence = near(sample, float(lowest), float(np.log(expected + within)))
    why = f"whole interval within {within:g} of {expected:g}, or outside{said}"
    found = _judged(to, f"ratio of {of}", sample, evidence, why)
    times = Interval(*(float(x) for x in np.exp(found.interval)))
    words = f"ratio of {of}: {times}" if found.measured else ""
    return found._replace(interval=times, measured=words)


def value(measured: Measured, claim: dict[str, Any], name: str) -> Judged:
    """Judges whether final values are a number, to some tolerance."""
    metric, expected, within = claim["metric"], claim["is"], claim["within"]
    numbers = measured.of(final(metric), name)
    known = ~np.isnan(numbers.values)
    values, open_ends = numbers.values[known], numbers.bounds[known]
    sample = bounds.contrast(values[:, None], open_ends[:, None], np.ones(1))
    evidence = near(sample, expected - within, expected + within)
    to = f": {metric} is {expected:g} to {within:g}"
    said = _said(numbers, name)
    why = f"whole interval within {within:g} of {expected:g}, or outside{said}"
    return _judged(to, metric, sample, evidence, why)


def _difference(
    measured: Measured, metric: str, one: str, other: str
) -> tuple[Sample, str]:
    """Returns the paired differences of final values, and what is to be said of them.

    That is who diverged and what that counts as, and who has no final value.
    """
    sides = [measured.of(final(metric), group) for group in (one, other)]
    first, second = _paired(*sides)
    sample = bounds.difference(first.values, second.values, first.bounds, second.bounds)
    if first.diverged.size and (first.diverged & second.diverged).all():
        # The worst value on both sides does not make them alike.
        sample = sample._replace(above=True, below=True)
    return sample, _said(sides[0], one) + _said(sides[1], other)


def _paired(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers]:
    """Returns the replicates in which both sides have a number, in one order."""
    first, second = _known(first), _known(second)
    _, one, other = np.intersect1d(
        first.replicates, second.replicates, return_indices=True
    )
    return _rows(first, one), _rows(second, other)


def _known(numbers: Numbers) -> Numbers:
    return _rows(numbers, np.flatnonzero(~np.isnan(numbers.values)))


def _rows(numbers: Numbers, rows: np.ndarray) -> Numbers:
    return Numbers(*(column[rows] for column in numbers))


def _positive(numbers: Numbers, sides: list[Numbers], of: str) -> Numbers:
    """Returns the numbers with those of diverged runs as bounds of a logarithm.

    The worst accuracy is zero, which has none: such a run is then no better than the
    worst positive value on either side.
    """
    lost = numbers.diverged & (numbers.values == WORST.get(of, np.nan))
    seen = np.concatenate([side.values for side in sides])
    seen = seen[seen > 0]
    if not (lost.any() and seen.size):
        return numbers
    return numbers._replace(
        values=np.where(lost, seen.min(), numbers.values),
        bounds=np.where(lost, AT_MOST, numbers.bounds),
    )


def _said(numbers: Numbers, group: str) -> str:
    """Returns words on the runs of a group that diverged, and on those without value.

    None is left out of a comparison, or counts as something, in silence.
    """
    said = ""
    if lost := int(numbers.diverged.sum()):
        first = int(np.flatnonzero(numbers.diverged)[0])
        counted = COUNTED[int(numbers.bounds[first])]
        said += f"; {lost} of {group} diverged, {counted} {numbers.values[first]:.4g}"
    if missing := int(np.isnan(numbers.values).sum()):
        said += f"; {missing} of {group} without a final value"
    return said


def _judged(to: str, of: str, sample: Sample, evidence: Any, why: str) -> Judged:
    n = sample.values.size
    if sample.open:
        why = f"runs of both sides diverged; {why}"
        return Judged(to, NONE, "", NOTHING, n, why)
    found = bounds.interval(sample)
    return Judged(to, evidence, f"{of}: {found}" if n else "", found, n, why)
