"""Claims that final values of one variant are not worse than those of another."""

from typing import ClassVar

from .base import OfPair
from .entries import Metric, Within


class NoWorse(OfPair):
    """Has final values of `metric` that are worse than those of `than` by little.

    That is by less than `within`; they may be better by any amount.
    """

    named: ClassVar[str] = "no_worse"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.no_worse:judge"
    lacking: ClassVar[str] = "how much worse at most; add within: 0.01"
    words: ClassVar[str] = " no worse than "

    no_worse: str
    """Variant that is no worse."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    within: Within
    """Largest loss that counts as none, in the unit of the metric."""
