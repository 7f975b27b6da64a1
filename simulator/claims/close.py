"""Claims that final values of two variants are equivalent."""

from typing import ClassVar

from .base import OfPair
from .entries import Metric, Within


class Close(OfPair):
    """Has final values of `metric` that differ from those of `than` by little."""

    named: ClassVar[str] = "close"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.close:judge"
    lacking: ClassVar[str] = "how close; add within: 0.01"
    words: ClassVar[str] = " as good as "

    close: str
    """Variant that is as good."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    within: Within
    """Largest difference, in the unit of the metric."""
