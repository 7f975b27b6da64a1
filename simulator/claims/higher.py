"""Claims that final values of one variant are larger than those of another."""

from typing import ClassVar

from .base import OfPair
from .entries import Metric


class Higher(OfPair):
    """Ends with a larger final value of `metric` than `than`."""

    named: ClassVar[str] = "higher"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.higher:judge"
    words: ClassVar[str] = " higher than "

    higher: str
    """Variant with the larger value."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
