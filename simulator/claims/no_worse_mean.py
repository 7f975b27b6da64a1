"""Claims that the mean of final values over a sweep is not worse."""

from typing import ClassVar

from .base import OfPair
from .entries import Metric, Within


class NoWorseMean(OfPair):
    """Has a mean of final values of `metric` over a sweep that is worse by little.

    That is by less than `within`, averaged over all swept values of `over`, such as
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
