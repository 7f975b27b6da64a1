"""Claims on final values along a sweep: monotone, steady, no worse on average."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ...simulator.parts.errors import StudyError
from ...simulator.scenario.claims.base import Claim, Metric, OfPair, Within
from .. import bounds
from ..bounds import Sample, contrast
from ..facts import short
from ..statistics import UNKNOWN
from .final_values import remarks
from .numbers import Numbers, final, together
from .verdict import NONE, Judged, all_of, judged, near, side

if TYPE_CHECKING:
    from .measured import Measured


def swept(
    measured: "Measured", over: str, variant: str, groups: Sequence[str]
) -> dict[float | str, str]:
    """Returns which of some groups has each swept value of a variant, in their order.

    Raises:
        StudyError: The key is not swept, or others are as well.
    """
    at: dict[float | str, str] = {}
    mine = measured.groups(variant)
    for group in filter(mine.__contains__, groups):
        parameters = measured.parameters(group)
        if over not in parameters:
            raise StudyError(f"{over} is not swept for {variant}")
        value = short(parameters[over])
        if value in at:
            raise StudyError(f"more than {over} is swept for {variant}")
        at[value] = group
    if not at:
        raise StudyError(f"the study has no finished runs of {variant!r}")
    return at


def along(
    measured: "Measured", claim: "Monotone | Steady", groups: tuple[str, ...]
) -> tuple[list[float | str], Sample, str]:
    """Returns final values along a sweep, less those of a variant that is subtracted.

    Returns:
        The swept values, numbers sorted and words in the sweep's order; final values,
        `[replicates, swept values]`, of the replicates that have all of them; and a
        remark on the others.

    Raises:
        StudyError: The key is not swept, or others are as well.
    """
    metric, over = claim.metric, claim.over
    variants = [name for names in claim.variants().values() for name in names]
    sides = [swept(measured, over, name, groups) for name in variants]
    numbers = all(isinstance(value, int | float) for value in sides[0])
    names = sorted(sides[0]) if numbers else list(sides[0])
    if any({*side} != {*names} for side in sides):
        raise StudyError(f"{' and '.join(variants)} have different values of {over}")
    columns = [measured.of(final(metric), at[name]) for at in sides for name in names]
    sample = together(*columns)
    if len(sides) == 2:
        eye = np.eye(len(names))
        ends = [contrast(sample, row) for row in np.hstack([eye, -eye])]
        sample = Sample(*(np.column_stack(end) for end in zip(*ends, strict=True)))
    said = ""
    if lost := sum(int(column.diverged.sum()) for column in columns):
        said += f"; {lost} runs diverged and are as bad as the worst, or worse"
    every = set().union(*(column.replicates.tolist() for column in columns))
    if missing := len(every) - len(sample.low):
        said += f"; {missing} replicates without a final value at some {over}"
    return names, sample, said


WORDS = {"rising": ("rises", "rise"), "falling": ("falls", "fall")}
"""Words for a direction, of the swept values and of a step."""


class Monotone(Claim):
    """Has a final value of `metric` that grows with the swept `over`, or falls.

    With `than`, its difference from that variant's does.
    """

    named: ClassVar[str] = "monotone"
    lacking: ClassVar[str] = "over what; add over: a key of the sweep"
    along_sweep: ClassVar[bool] = True
    words: ClassVar[str] = " less "

    monotone: str
    """Variant that is swept."""
    than: str | None = None
    """Variant to be subtracted at each swept value; none if left out."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    over: str
    """Key of the sweep."""
    direction: Literal["rising", "falling"] = "rising"
    """Direction of the metric as the swept value grows."""
    within: Within = 0.0
    """Largest step the other way that counts as none, in the unit of the metric."""

    def variants(self) -> dict[str, tuple[str, ...]]:
        return super().variants() | ({"than": (self.than,)} if self.than else {})

    def judge(self, measured: "Measured", *groups: str) -> Judged:
        """Judges whether final values grow along a sweep, or whether they fall.

        That is from the first to the last swept value, and by no step from one to the
        next the other way by `margin`.
        """
        metric, over, within = self.metric, self.over, self.within
        sign = 1.0 if self.direction == "rising" else -1.0
        verb, noun = WORDS[self.direction]
        names, sample, said = along(measured, self, groups)
        to = f": {metric} {verb} with {over}" + (f", to {within:g}" if within else "")
        if len(names) < 2:
            return Judged(to, NONE, "", UNKNOWN, 0, f"{over} has fewer than two values")
        steps = [
            bounds.contrast(sample, sign * step)
            for step in np.diff(np.eye(len(names)), 1, 0)
        ]
        ends = np.eye(len(names))[-1] - np.eye(len(names))[0]
        found = [side(bounds.contrast(sample, sign * ends), 0.0)]
        found += [side(step, 0.0 - within) for step in steps if len(steps) > 1]
        sizes = [bounds.interval(step).mean for step in steps]
        least = int(np.argmin(np.nan_to_num(sizes, nan=-np.inf)))
        of = f"smallest {noun}, {names[least]} to {names[least + 1]}"
        why = f"every step against {0.0 - within:g}{said}"
        return judged(to, of, steps[least], all_of(found), why)


class Steady(Claim):
    """Has a final value of `metric` that the swept `over` changes by little."""

    named: ClassVar[str] = "steady"
    lacking: ClassVar[str] = "over what, how steady; add over: KEY, margin: 1"
    along_sweep: ClassVar[bool] = True

    steady: str
    """Variant that is swept."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    over: str
    """Key of the sweep."""
    within: Within
    """Largest difference between two swept values, in the unit of the metric."""

    def judge(self, measured: "Measured", *groups: str) -> Judged:
        """Judges whether final values differ by at most `margin` in all pairs."""
        metric, over, within = self.metric, self.over, self.within
        names, sample, said = along(measured, self, groups)
        to = f": {metric} the same for all {over}, to {within:g}"
        if len(names) < 2:
            return Judged(to, NONE, "", UNKNOWN, 0, f"{over} has fewer than two values")
        unit = np.eye(len(names))
        pairs = [bounds.contrast(sample, b - a) for a, b in combinations(unit, 2)]
        found = [near(pair, -within, within) for pair in pairs]
        sizes = [abs(bounds.interval(pair).mean) for pair in pairs]
        worst = pairs[int(np.argmax(np.nan_to_num(sizes, nan=np.inf)))]
        why = f"all pairs within {within:g}, or one outside{said}"
        return judged(to, "largest difference", worst, all_of(found), why)


class NoWorseMean(OfPair):
    """Has final values of `metric` that are worse by little on average over a sweep.

    That is by less than `margin`, averaged over all swept values of `over`, such as
    networks, which is one number of each replicate.
    """

    named: ClassVar[str] = "no_worse_mean"
    lacking: ClassVar[str] = "over what, by how much; add over: KEY, margin: 0.01"
    along_sweep: ClassVar[bool] = True
    words: ClassVar[str] = " no worse than "

    no_worse_mean: str
    """Variant that is no worse."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    over: str
    """Key of the sweep."""
    within: Within
    """Largest loss that counts as none, in the unit of the metric."""

    def judge(self, measured: "Measured", *groups: str) -> Judged:
        """Judges whether the mean over a sweep is worse by less than `margin`.

        Swept values, such as networks, are those of the study and no sample of others.
        What diverged counts as in `no_worse`.
        """
        metric, within, over = self.metric, self.within, self.over
        one, other = (
            swept(measured, over, name, groups)
            for name in (self.no_worse_mean, self.than)
        )
        sides: list[Numbers] = []
        said = ""
        for value, group in one.items():
            if value not in other:
                raise StudyError(f"{self.than} has no runs at {over} {value}")
            for name in (group, other[value]):
                sides.append(measured.of(final(metric), name))
                said += remarks(sides[-1], name)
        weights = np.tile([1.0, -1.0], len(one)) / len(one)
        sample = bounds.contrast(together(*sides), weights)
        rising = measured.metric(metric).higher_is_better
        better = sample if rising else sample.mirrored
        to = f" in {metric} to {within:g}, averaged over {over}"
        why = f"difference against {-within if rising else within:g}{said}"
        evidence = side(better, -within)
        return judged(to, f"mean difference of {metric}", sample, evidence, why)
