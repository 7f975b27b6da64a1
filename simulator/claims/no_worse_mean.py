"""Claims that final values are not worse in the mean of what is swept."""

from typing import ClassVar

from .base import OfPair
from .entries import Metric, Within


class NoWorseMean(OfPair):
    """Has final values of `metric` that are worse by little in the mean of a sweep.

    That is by less than `within`, in the mean of all swept values of `over`, such as
    networks, which is one number of each replicate.
    """

    named: ClassVar[str] = "no_worse_mean"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.no_worse_mean:judge"
    lacking: ClassVar[str] = "over what, by how much; add over: KEY, within: 0.01"
    along_sweep: ClassVar[bool] = True
    words: ClassVar[str] = " no worse than "

    no_worse_mean: str
    """Variant that is no worse."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    over: str
    """Key of the sweep."""
    within: Within
    """Largest loss that counts as none, in the unit of the metric."""

    @property
    def swept_key(self) -> str:
        """Key of the sweep that the claim is about."""
        return self.over
