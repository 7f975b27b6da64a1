"""Claims that one variant reaches a target faster than another."""

from typing import ClassVar, Literal

from pydantic import model_validator

from .base import OfPair

Counted = Literal[
    "time",
    "commits",
    "epochs",
    "rounds",
    "messages",
    "bytes",
    "epsilon",
    "computation_s",
    "communication_s",
]


class Faster(OfPair):
    """Reaches `to` in less virtual time than `than`, or in less of another count."""

    named: ClassVar[str] = "faster"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.faster:judge"
    measured_by: ClassVar[str] = "stalesim.analysis.claims.faster:quantities"
    lacking: ClassVar[str] = "what faster leads to; add to: {test_accuracy: 0.9}"
    words: ClassVar[str] = " faster than "

    faster: str
    """Variant that is faster."""
    to: dict[str, float]
    """Target: a metric and its value."""
    counted_in: Counted = "time"
    """Count that is compared at the target."""
    by_at_least: float = 1.0
    """Smallest ratio of the larger count to the smaller one."""

    @model_validator(mode="after")
    def _one_target(self) -> "Faster":
        if len(self.to) != 1:
            raise ValueError(f"must say {self.lacking}")
        return self
