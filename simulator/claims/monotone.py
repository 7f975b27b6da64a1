"""Claims that final values grow along a sweep, or fall."""

from typing import ClassVar, Literal

from .base import Claim
from .entries import Metric, Within


class Monotone(Claim):
    """Has a final value of `metric` that grows with the swept `over`, or falls.

    With `than`, its difference from that variant's does.
    """

    named: ClassVar[str] = "monotone"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.monotone:judge"
    lacking: ClassVar[str] = "over what; add over: a key of the sweep"
    along_sweep: ClassVar[bool] = True
    words: ClassVar[str] = " less "

    monotone: str
    """Variant that is swept."""
    than: str | None = None
    """Variant to be subtracted at each swept value; none if left out."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    over: str
    """Key of the sweep."""
    direction: Literal["rising", "falling"] = "rising"
    """Direction of the metric as the swept value grows."""
    within: Within = 0.0
    """Largest step the other way that counts as none, in the unit of the metric."""

    @property
    def swept_key(self) -> str:
        """Key of the sweep that the claim is about."""
        return self.over

    def variants(self) -> dict[str, tuple[str, ...]]:
        """Returns the variants that the claim names, by entry."""
        return super().variants() | ({"than": (self.than,)} if self.than else {})
