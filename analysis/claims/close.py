"""Claims that final values of two variants are equivalent."""

from typing import TYPE_CHECKING, ClassVar

from ...simulator.claims.base import OfPair
from ...simulator.claims.entries import Metric, Within
from .final_values import difference
from .verdict import Judged, judged, near

if TYPE_CHECKING:
    from .measured import Measured


class Close(OfPair):
    """Has final values of `metric` that differ from those of `than` by little."""

    named: ClassVar[str] = "close"
    lacking: ClassVar[str] = "how close; add within: 0.01"
    words: ClassVar[str] = " as good as "

    close: str
    """Variant that is as good."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    within: Within
    """Largest difference, in the unit of the metric."""

    def judge(self, measured: "Measured", one: str, other: str) -> Judged:
        """Judges whether final values are equivalent, which is more than not different.

        The claim holds if the median difference is within `within` of zero, and does
        not hold if it is outside.
        """
        metric, within = self.metric, self.within
        sample, said = difference(measured, metric, one, other)
        evidence = near(sample, -within, within)
        why = f"whole interval within {within:g}, or outside{said}"
        to = f" in {metric} to {within:g}"
        return judged(to, f"difference of {metric}", sample, evidence, why)
