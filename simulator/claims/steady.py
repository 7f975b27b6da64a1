"""Claims that final values stay the same along a sweep."""

from typing import ClassVar

from .base import Claim
from .entries import Metric, Within


class Steady(Claim):
    """Has a final value of `metric` that the swept `over` changes by little."""

    named: ClassVar[str] = "steady"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.steady:judge"
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

    @property
    def swept_key(self) -> str:
        """Key of the sweep that the claim is about."""
        return self.over
