"""Parts that claims on final values share: pairs, remarks and intervals."""

from collections.abc import Sequence

import numpy as np

from analysis import bounds
from analysis.bounds import AT_LEAST, AT_MOST, EXACT, Sample
from analysis.claims.measured import Measured, Numbers, final
from analysis.claims.verdict import NONE, NOTHING, Evidence, Judged
from simulator.metrics import find

COUNTED = {EXACT: "counted as", AT_LEAST: "at least", AT_MOST: "at most"}
"""Words before the number of a run that diverged."""


def difference(
    measured: Measured, metric: str, one: str, other: str
) -> tuple[Sample, str]:
    """Returns the paired differences of final values, and what is to be said of them.

    That is who diverged and what that counts as, and who has no final value.
    """
    sides = [measured.of(final(metric), group) for group in (one, other)]
    return difference_of(sides, (one, other), "a final value")


def difference_of(
    sides: Sequence[Numbers], names: Sequence[str], called: str
) -> tuple[Sample, str]:
    """Returns the paired differences of two groups' numbers, and what is to be said.

    Args:
        sides: Numbers of the two groups.
        names: Names of the groups.
        called: What a run without a number lacks, in words.
    """
    first, second = paired(*sides)
    sample = bounds.difference(first.values, second.values, first.bounds, second.bounds)
    if first.diverged.size and (first.diverged & second.diverged).all():
        # The worst value on both sides does not make them alike.
        sample = sample._replace(above=True, below=True)
    said = (
        remarks(side, name, called) for side, name in zip(sides, names, strict=True)
    )
    return sample, "".join(said)


def of_group(measured: Measured, metric: str, group: str) -> tuple[Sample, str]:
    """Returns the final values of a group, and remarks on runs that diverged."""
    numbers = measured.of(final(metric), group)
    known = ~np.isnan(numbers.values)
    values, open_ends = numbers.values[known], numbers.bounds[known]
    sample = bounds.contrast(values[:, None], open_ends[:, None], np.ones(1))
    return sample, remarks(numbers, group)


def paired(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers]:
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


def positive(numbers: Numbers, sides: list[Numbers], of: str) -> Numbers:
    """Returns the numbers with those of diverged runs as bounds of a logarithm.

    The worst accuracy is zero, which has none: such a run is then no better than the
    worst positive value on either side.
    """
    metric = find(of)  # else it is a quantity that may grow without end
    worst = np.nan if metric is None or metric.worst is None else metric.worst
    lost = numbers.diverged & (numbers.values == worst) & (numbers.values <= 0)
    seen = np.concatenate([side.values for side in sides])
    seen = seen[seen > 0]
    if not (lost.any() and seen.size):
        return numbers
    return numbers._replace(
        values=np.where(lost, seen.min(), numbers.values),
        bounds=np.where(lost, AT_MOST, numbers.bounds),
    )


def remarks(numbers: Numbers, group: str, called: str = "a final value") -> str:
    """Returns words on the runs of a group that diverged, and on those without value.

    None is left out of a comparison, or counts as something, in silence.
    """
    said = ""
    if lost := int(numbers.diverged.sum()):
        first = int(np.flatnonzero(numbers.diverged)[0])
        counted = COUNTED[int(numbers.bounds[first])]
        said += f"; {lost} of {group} diverged, {counted} {numbers.values[first]:.4g}"
    if missing := int(np.isnan(numbers.values).sum()):
        said += f"; {missing} of {group} without {called}"
    return said


def judged(to: str, of: str, sample: Sample, evidence: Evidence, why: str) -> Judged:
    """Returns what was judged of a sample; nothing where both sides diverged."""
    n = sample.values.size
    if sample.open:
        why = f"runs of both sides diverged; {why}"
        return Judged(to, NONE, "", NOTHING, n, why)
    found = bounds.interval(sample)
    return Judged(to, evidence, f"{of}: {found}" if n else "", found, n, why)
