"""Claims that one variant stands larger values of a swept number than another."""

from typing import Annotated, ClassVar

from pydantic import Field

from .base import OfPair
from .entries import Metric, Within


class Critical(OfPair):
    """Has a larger critical value of the swept `over` than `than`.

    A run's critical value is the largest swept one with which it does not diverge, and
    ends with a `metric` within `within` of the best that the variant reaches along the
    sweep in the same replicate. It is known to the distance of two swept values.
    """

    named: ClassVar[str] = "critical"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.critical:judge"
    lacking: ClassVar[str] = "of what, how near the best; add over: KEY, within: 0.05"
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

    @property
    def swept_key(self) -> str:
        """Key of the sweep that the claim is about."""
        return self.over
