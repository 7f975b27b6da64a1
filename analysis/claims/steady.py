"""Claims that final values stay the same along a sweep."""

from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...simulator.claims.base import Claim
from ...simulator.claims.entries import Metric, Within
from .. import bounds
from .sweeps import along
from .verdict import NONE, NOTHING, Evidence, Judged, judged, near

if TYPE_CHECKING:
    from .measured import Measured


class Steady(Claim):
    """Has a final value of `metric` that the swept `over` changes by little."""

    named: ClassVar[str] = "steady"
    lacking: ClassVar[str] = "over what, how steady; add over: KEY, within: 1"
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
        """Judges whether final values stay the same along a sweep.

        The claim holds if the differences of final values between all pairs of swept
        values are within `within`, and does not hold if one is outside, by Bonferroni's
        correction.
        """
        metric, over, within = self.metric, self.over, self.within
        names, sample, said = along(measured, self, groups)
        to = f": {metric} the same for all {over}, to {within:g}"
        if len(names) < 2:
            return Judged(to, NONE, "", NOTHING, 0, f"{over} has fewer than two values")
        unit = np.eye(len(names))
        pairs = [bounds.contrast(sample, b - a) for a, b in combinations(unit, 2)]
        found = [near(pair, -within, within) for pair in pairs]
        evidence = Evidence(
            max(pair.for_it for pair in found),
            min(1.0, len(found) * min(pair.against for pair in found)),
        )
        sizes = [abs(bounds.interval(pair).mean) for pair in pairs]
        worst = pairs[int(np.argmax(np.nan_to_num(sizes, nan=np.inf)))]
        why = f"all pairs within {within:g}, or one outside{said}"
        return judged(to, "largest difference", worst, evidence, why)
