"""Claims on variants' final values: higher, no worse, close, a number, or a ratio."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator

from ...simulator.parts.base import LocatedError
from ...simulator.parts.metrics import QUANTITIES
from ...simulator.scenario.claims.base import Claim, Metric, Of, OfPair, Within
from .. import bounds
from ..bounds import Sample
from .numbers import Frame, Numbers, final, final_frame, together
from .verdict import Judged, judged, near, side

if TYPE_CHECKING:
    import pandas as pd

    from ...simulator.files.study import Study
    from .measured import Measured


DIFFERENCE = np.array([1.0, -1.0])
"""Weights of two sides in their difference."""


def difference(
    measured: "Measured", metric: str, one: str, other: str
) -> tuple[Sample, str]:
    """Returns the paired differences of final values, and remarks on them.

    That is who diverged and what that counts as, and who has no final value.
    """
    sides = [measured.of(final(metric), group) for group in (one, other)]
    said = "".join(map(remarks, sides, (one, other)))
    return bounds.contrast(together(*sides), DIFFERENCE), said


def of_group(measured: "Measured", metric: str, group: str) -> tuple[Sample, str]:
    """Returns the final values of a group, and remarks on runs that diverged."""
    return alone(measured.of(final(metric), group), group)


def alone(numbers: Numbers, group: str) -> tuple[Sample, str]:
    """Returns the numbers of a group, and remarks on runs that diverged."""
    known = numbers.known
    return Sample(numbers.low[known], numbers.high[known]), remarks(numbers, group)


def remarks(numbers: Numbers, group: str) -> str:
    """Returns words on the runs of a group that diverged, and on those without value.

    None is left out of a comparison, or counts as something, in silence.
    """
    said = ""
    if numbers.diverged.any():
        first = int(np.flatnonzero(numbers.diverged)[0])
        low, high = numbers.low[first], numbers.high[first]
        at = f"at least {low:.4g}" if np.isposinf(high) else f"at most {high:.4g}"
        said += f"; {int(numbers.diverged.sum())} of {group} diverged, {at}"
    if missing := int((~numbers.known).sum()):
        said += f"; {missing} of {group} without a final value"
    return said


class Higher(OfPair):
    """Ends with a larger final value of `metric` than `than`."""

    named: ClassVar[str] = "higher"
    words: ClassVar[str] = " higher than "

    higher: str
    """Variant with the larger value."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""

    def judge(self, measured: "Measured", one: str, other: str) -> Judged:
        """Judges the median difference of final values against zero.

        A higher value need not be a better one.
        """
        metric = self.metric
        sample, said = difference(measured, metric, one, other)
        why = f"difference against 0{said}"
        evidence = side(sample, 0.0)
        return judged(f" in {metric}", f"difference of {metric}", sample, evidence, why)


class NoWorse(OfPair):
    """Has final values of `metric` that are worse than those of `than` by little.

    That is by less than `margin`; they may be better by any amount.
    """

    named: ClassVar[str] = "no_worse"
    lacking: ClassVar[str] = "how much worse at most; add margin: 0.01"
    words: ClassVar[str] = " no worse than "

    no_worse: str
    """Variant that is no worse."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    within: Within
    """Largest loss that counts as none, in the unit of the metric."""

    def judge(self, measured: "Measured", one: str, other: str) -> Judged:
        """Judges the median difference of final values against a loss of `margin`."""
        metric, within = self.metric, self.within
        sample, said = difference(measured, metric, one, other)
        rising = measured.metric(metric).higher_is_better
        better = sample if rising else sample.mirrored
        why = f"difference against {-within if rising else within:g}{said}"
        evidence = side(better, -within)
        to = f" in {metric} to {within:g}"
        return judged(to, f"difference of {metric}", sample, evidence, why)


class Close(OfPair):
    """Has final values of `metric` that differ from those of `than` by little."""

    named: ClassVar[str] = "close"
    lacking: ClassVar[str] = "how close; add margin: 0.01"
    words: ClassVar[str] = " as good as "

    close: str
    """Variant that is as good."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    within: Within
    """Largest difference, in the unit of the metric."""

    def judge(self, measured: "Measured", one: str, other: str) -> Judged:
        """Judges whether the median difference of final values is within `margin` of 0.

        That they are equivalent is more than that they are not different.
        """
        metric, within = self.metric, self.within
        sample, said = difference(measured, metric, one, other)
        evidence = near(sample, -within, within)
        why = f"whole interval within {within:g}, or outside{said}"
        to = f" in {metric} to {within:g}"
        return judged(to, f"difference of {metric}", sample, evidence, why)


class Value(Claim):
    """Has a final value of `metric` that is `is`, to `margin`."""

    named: ClassVar[str] = "value"
    lacking: ClassVar[str] = "which value; add is: 0.9 and margin: 0.01"
    compares: ClassVar[bool] = False

    value: str
    """Variant with the value."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    is_: Annotated[float, Field(alias="is", strict=True)]
    """Value, in the unit of the metric."""
    within: Within
    """Largest distance of the value from `is`."""

    def targets(self) -> Iterator[tuple[tuple[str, ...], str, float]]:
        yield ("is",), self.metric, self.is_

    def judge(self, measured: "Measured", name: str) -> Judged:
        """Judges whether the median final value is within `margin` of `is`."""
        metric, expected, within = self.metric, self.is_, self.within
        sample, said = of_group(measured, metric, name)
        evidence = near(sample, expected - within, expected + within)
        to = f": {metric} is {expected:g} to {within:g}"
        why = f"whole interval within {within:g} of {expected:g}, or outside{said}"
        return judged(to, metric, sample, evidence, why)


class Ratio(OfPair):
    """Has `is` times what `than` has: their ratio is `is`, to `margin`."""

    named: ClassVar[str] = "ratio"
    lacking: ClassVar[str] = "of what; add of: virtual_s, is: 2, margin: 1"
    words: ClassVar[str] = " against "

    ratio: str
    """Variant whose number is divided by that of `than`."""
    of: Of
    """Metric, of which final values count, or another quantity at the end of a run."""
    is_: Annotated[float, Field(alias="is", strict=True)]
    """Ratio, above 0."""
    within: Within
    """Largest distance of the ratio from `is`."""

    @model_validator(mode="after")
    def _positive(self) -> "Ratio":
        if not self.is_ > 0:
            raise LocatedError(
                f"is must be > 0 for a ratio, got {self.is_:g}; write a larger number",
                ("is",),
            )
        return self

    def quantities(self) -> dict[str, Frame]:
        of = self.of
        return {_end(of): _at_end(of) if of in QUANTITIES else final_frame(of)}

    def judge(self, measured: "Measured", one: str, other: str) -> Judged:
        """Judges whether the median ratio over pairs of replicates is within `margin`.

        A number that cannot be above zero has no ratio: its pair counts for neither
        side.
        """
        of, expected, within = self.of, self.is_, self.within
        sides = [measured.of(_end(of), group) for group in (one, other)]
        said = "".join(map(remarks, sides, (one, other)))
        sample = bounds.contrast(bounds.logarithm(together(*sides)), DIFFERENCE)
        if none := int((np.isinf(sample.low) & np.isinf(sample.high)).sum()):
            said += f"; {none} pairs without a ratio of numbers above 0"
        lowest = np.log(expected - within) if expected > within else -np.inf
        evidence = near(sample, float(lowest), float(np.log(expected + within)))
        to = f": ratio of {of} is {expected:g} to {within:g}"
        why = f"ratio within {within:g} of {expected:g}, or outside{said}"
        return judged(to, f"ratio of {of}", sample, evidence, why, logs=True)


def _end(of: str) -> str:
    return f"{of} at the end" if of in QUANTITIES else final(of)


def _at_end(of: str) -> Frame:
    from ..frames import runs
    from ..targets import final_quantities

    def measured(study: "Study") -> "pd.DataFrame":
        table = final_quantities(study, of, diverged=True)
        lost = (runs(study)["stop"] == "diverged").to_numpy(bool)
        return table.assign(low=table["value"], high=table["value"].mask(lost, np.inf))

    return measured
