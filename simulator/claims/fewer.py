"""Claims that one variant stops at its target after fewer commits than another."""

from typing import ClassVar

from .base import OfPair


class Fewer(OfPair):
    """Stops at the target of its runs after fewer commits than `than`."""

    named: ClassVar[str] = "fewer"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.fewer:judge"
    measured_by: ClassVar[str] = "stalesim.analysis.claims.fewer:quantities"
    words: ClassVar[str] = " in fewer commits than "

    fewer: str
    """Variant with fewer commits."""
    by_at_least: float = 1.0
    """Smallest ratio of the larger number of commits to the smaller one."""
