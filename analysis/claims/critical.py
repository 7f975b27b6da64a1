"""Claims that one variant tolerates larger values of a swept number than another."""

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from ...simulator.parts.errors import StudyError
from ...simulator.scenario.claims.base import Metric, OfPair, Within
from .. import bounds
from .final_values import DIFFERENCE
from .numbers import Numbers, final, together
from .sweeps import swept
from .verdict import Judged, judged, side

if TYPE_CHECKING:
    from .measured import Measured


class Critical(OfPair):
    """Has a larger critical value of the swept `over` than `than`.

    A run's critical value is the largest swept one with which it does not diverge, and
    ends with a `metric` within `margin` of the best that the variant reaches along the
    sweep in the same replicate. It is known to the distance of two swept values.
    """

    named: ClassVar[str] = "critical"
    lacking: ClassVar[str] = "of what, how near the best; add over: KEY, margin: 0.05"
    along_sweep: ClassVar[bool] = True
    words: ClassVar[str] = " larger than that of "

    critical: str
    """Variant with the larger critical value."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    over: str
    """Key of the sweep; its values are numbers above 0."""
    within: Within
    """Largest loss against the best swept value, in the unit of the metric."""
    by_at_least: Annotated[float, Field(gt=0)] = 1.0
    """Smallest ratio of the two critical values."""

    def judge(self, measured: "Measured", *groups: str) -> Judged:
        """Judges the ratio of two critical values, replicate by replicate.

        A critical value is between the largest swept one that is critical and the next,
        or beyond the sweep.
        """
        one, other, over = self.critical, self.than, self.over
        sides = [self._values(measured, name, groups) for name in (one, other)]
        sample = bounds.contrast(bounds.logarithm(together(*sides)), DIFFERENCE)
        to = f" in {over}, within {self.within:g} of the best"
        if self.by_at_least != 1:
            to += f", {self.by_at_least:g} times"
        why = f"ratio against {self.by_at_least:g}, known to the swept values"
        if not sample.low.size:
            why = "no replicate has all values"
            return judged(to, "", sample, side(sample, 0.0), why)
        if lost := sum(int(numbers.diverged.sum()) for numbers in sides):
            why += f"; {lost} replicates in which all swept values diverged"
        if (np.isinf(sample.low) & np.isinf(sample.high)).all():
            why = "both sides have critical values beyond the sweep; widen it"
        spans = " and ".join(map(_span, (one, other), sides))
        words = f"critical {over}: {spans}; ratio"
        evidence = side(sample, float(np.log(self.by_at_least)))
        return judged(to, words, sample, evidence, why, logs=True)

    def _values(
        self, measured: "Measured", variant: str, groups: tuple[str, ...]
    ) -> Numbers:
        """Returns the critical value of each replicate that has all final values.

        Its `diverged` says whether all of the replicate's runs did.
        """
        at = swept(measured, self.over, variant, groups)
        if not all(isinstance(value, int | float) and value > 0 for value in at):
            raise StudyError(f"{self.over} is not swept over numbers above 0")
        columns = [measured.of(final(self.metric), at[value]) for value in sorted(at)]
        every = (set(column.replicates.tolist()) for column in columns)
        common = sorted(set.intersection(*every))
        rows = [np.searchsorted(column.replicates, common) for column in columns]
        pairs = list(zip(columns, rows, strict=True))
        values = np.column_stack([column.low[these] for column, these in pairs])
        lost = np.column_stack([column.diverged[these] for column, these in pairs])
        better = values if measured.metric(self.metric).higher_is_better else -values
        known = np.all(lost | ~np.isnan(values), axis=1)
        better = np.where(lost | np.isnan(values), -np.inf, better)
        best = better.max(axis=1, keepdims=True)
        slack = 1e-12 * (1 + self.within)
        stands = ~lost & (better >= best - self.within - slack)
        # Before the sweep lies 0, after it no end.
        places = np.array([0.0, *sorted(at), np.inf])
        largest = np.where(stands, np.arange(1, len(at) + 1), 0).max(axis=1)
        return Numbers(
            np.array(common, np.int64)[known],
            places[largest][known],
            places[largest + 1][known],
            np.all(lost, axis=1)[known],
        )


def _span(name: str, numbers: Numbers) -> str:
    low, high = numbers.low.min(), numbers.high.max()
    return f"{name} {low:g} to {high:g}" if np.isfinite(high) else f"{name} >= {low:g}"
