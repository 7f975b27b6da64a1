"""Claims that final values of one variant are larger than those of another."""

from typing import TYPE_CHECKING, ClassVar

from ...simulator.claims.base import OfPair
from ...simulator.claims.entries import Metric
from .final_values import difference
from .verdict import Judged, judged, side

if TYPE_CHECKING:
    from .measured import Measured


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
