"""Claims that one variant reaches a target faster than another."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator

from ...simulator.claims.base import OfPair
from ...simulator.config.errors import StudyError
from ...simulator.expenses import SPENDABLE
from .numbers import Frame
from .speed import ratio_to_target
from .verdict import Judged

if TYPE_CHECKING:
    from .measured import Measured


Counted = Literal[
    "time",
    "commits",
    "epochs",
    "rounds",
    "messages",
    "bytes",
    "epsilon",
    "joules",
    "price",
    "carbon_g",
    "computation_s",
    "communication_s",
]

LESS = {
    "time": "faster",
    "computation_s": "less computation",
    "communication_s": "less communication",
    "epsilon": "less epsilon",
    "joules": "less energy",
    "price": "a lower price",
    "carbon_g": "less carbon",
}
"""The word for less time; anything else that is counted is fewer."""
NOT_EVERYWHERE = {
    "rounds": "the protocol of {} has no rounds",
    "epsilon": "the runs of {} have no epsilon",
    **dict.fromkeys(SPENDABLE, "the clients of {} have no rates"),
}
"""Counts that not every run has."""


class Faster(OfPair):
    """Reaches `to` in less virtual time than `than`, or in less of another count."""

    named: ClassVar[str] = "faster"
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

    @property
    def counted(self) -> str:
        """Count that is compared at the target."""
        return self.counted_in

    def targets(self) -> Iterator[tuple[tuple[str, ...], str, float]]:
        """Yields the value that the metric is to reach."""
        for metric, value in self.to.items():
            yield ("to", metric), metric, value

    def quantities(self) -> dict[str, Frame]:
        """Returns what it took to reach the target."""
        from ..targets import times_to_target

        ((metric, value),) = self.to.items()
        counted = self.counted_in
        return {
            self._to_target(): lambda study: times_to_target(
                study, metric, value, counted
            )
        }

    def judge(self, measured: "Measured", one: str, other: str) -> Judged:
        """Judges the ratio of times to a target, replicate by replicate.

        Their median counts, against `by_at_least`. A time lies between two evaluations,
        or after the last one, and so does the ratio of two: a replicate counts that is
        known to lie on one side of the border.

        Raises:
            StudyError: There is nothing to count in one of the groups.
        """
        ((metric, value),) = self.to.items()
        counted = self.counted_in
        sides = [measured.of(self._to_target(), group) for group in (one, other)]
        for name, numbers in zip((one, other), sides, strict=True):
            if counted in NOT_EVERYWHERE and not numbers.known.any():
                missing = NOT_EVERYWHERE[counted].format(name)
                raise StudyError(f"{missing} to be counted")
        words = f"times {LESS.get(counted, f'fewer {counted}')}"
        to = f" to {metric} {value:g}"
        return ratio_to_target(
            one, other, sides, to, words, self.by_at_least, counted=counted
        )

    def _to_target(self) -> str:
        """Returns the name of what it took to reach the target."""
        ((metric, value),) = self.to.items()
        return f"{self.counted_in} to {metric} {value!r}"
