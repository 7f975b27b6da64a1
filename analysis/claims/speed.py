"""Claims that one variant reaches a target sooner than another."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import model_validator

from ...simulator.parts.errors import StudyError
from ...simulator.scenario.claims.base import OfPair
from .. import bounds
from ..bounds import Sample
from ..statistics import LEVEL
from .final_values import DIFFERENCE
from .numbers import Frame, Numbers, together
from .verdict import Judged, judged, side

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
    "computation_s",
    "communication_s",
]

LESS = {
    "time": "faster",
    "computation_s": "less computation",
    "communication_s": "less communication",
    "epsilon": "less epsilon",
    "joules": "less energy",
}
"""The word for less time; anything else that is counted is fewer."""
NOT_EVERYWHERE = {
    "rounds": "the protocol of {} has no rounds",
    "epsilon": "the runs of {} have no epsilon",
    "joules": "the clients of {} have no rates",
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
        return self.counted_in

    def targets(self) -> Iterator[tuple[tuple[str, ...], str, float]]:
        for metric, value in self.to.items():
            yield ("to", metric), metric, value

    def quantities(self) -> dict[str, Frame]:
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

        A time is between two evaluations, or after the last one, and so is the ratio of
        two: a replicate counts if its ratio is certainly on one side of the threshold.
        """
        ((metric, value),) = self.to.items()
        counted = self.counted_in
        sides = [measured.of(self._to_target(), group) for group in (one, other)]
        for name, numbers in zip((one, other), sides, strict=True):
            if counted in NOT_EVERYWHERE and not numbers.known.any():
                missing = NOT_EVERYWHERE[counted].format(name)
                raise StudyError(f"{missing} to be counted")
        words = f"times {LESS.get(counted, f'fewer {counted}')}"
        to, least = f" to {metric} {value:g}", self.by_at_least
        return ratio_to_target(one, other, sides, to, words, least, counted=counted)

    def _to_target(self) -> str:
        ((metric, value),) = self.to.items()
        return f"{self.counted_in} to {metric} {value!r}"


TO_STOP = "commits to the target"


class Fewer(OfPair):
    """Stops at the target of its runs after fewer commits than `than`."""

    named: ClassVar[str] = "fewer"
    words: ClassVar[str] = " in fewer commits than "

    fewer: str
    """Variant with fewer commits."""
    by_at_least: float = 1.0
    """Smallest ratio of the larger number of commits to the smaller one."""

    @property
    def counted(self) -> str:
        return "commits"

    def quantities(self) -> dict[str, Frame]:
        from ..targets import commits_to_stop

        return {TO_STOP: commits_to_stop}

    def judge(self, measured: "Measured", one: str, other: str) -> Judged:
        """Judges the ratio of commits until runs stopped, as `faster` that of times."""
        sides = [measured.of(TO_STOP, group) for group in (one, other)]
        to, words = " to the target", "times fewer commits"
        return ratio_to_target(one, other, sides, to, words, self.by_at_least)


LEAST_PART = 100.0
"""Times as close as evaluations are that they are advised to be, at most."""
WHOLE = ("commits", "rounds")
"""Counts of which `evaluate.every` takes integers alone."""


def ratio_to_target(
    one: str,
    other: str,
    sides: list[Numbers],
    to: str,
    words: str,
    least: float,
    *,
    counted: str = "commits",
) -> Judged:
    """Judges the ratio of times, or of counts, until something was reached.

    Args:
        one: Name of the faster group.
        other: Name of the slower group.
        sides: The cost of either side.
        to: Words that complete the claim.
        words: Words on the ratio.
        least: Smallest ratio.
        counted: Count that is compared.
    """
    if least != 1:
        to += f", {least:g} times"
    fast, slow = sides
    both = together(slow, fast)
    border = float(np.log(least))
    sample = bounds.contrast(bounds.logarithm(both), DIFFERENCE)
    evidence = side(sample, border)
    did_slow, did_fast = np.isfinite(both.high).sum(axis=0)
    n = sample.low.size
    why = f"ratio against {least:g}"
    if at_once := int((both.high <= 0).any(axis=1).sum()):
        why += f"; {at_once} pairs at the target before anything was learned"
    if did_slow < n or did_fast < n:
        late = [name for name, k in ((other, did_slow), (one, did_fast)) if k < n]
        why += f"; {' and '.join(late)} did not always reach the target"
    if min(evidence) > (1 - LEVEL) / 2:
        why += resolution(both, sample, border, counted)
    found = judged(to, words, sample, evidence, why, logs=True)
    if not n:
        return found
    reached = f"reached {did_fast}/{n} and {did_slow}/{n}"
    return found._replace(measured=f"{found.measured}; {reached}")


def resolution(both: Sample, ratios: Sample, border: float, counted: str) -> str:
    """Returns how wide ratios stay between evaluations, and a period that would decide.

    A period would decide half of the ratios if it leaves them open by less than the
    distance of their middle to the threshold.

    Args:
        both: The cost of the slower and the faster side.
        ratios: Logarithms of their ratios.
        border: Border of the claim, a logarithm.
        counted: Count that is compared, for the unit.
    """
    seen = np.isfinite(both.high).all(axis=1) & (both.high > 0).all(axis=1)
    mine = seen & (ratios.low <= border) & (ratios.high >= border)
    mine &= (both.low < both.high).any(axis=1)
    if not mine.any():
        return ""
    if np.isinf(both.low[mine]).any():
        return "; the evaluations before are not known"
    unit = "s" if counted == "time" else counted
    apart = float(np.median((both.high - both.low)[mine]))
    ends = np.exp([ratios.low[mine].min(), ratios.high[mine].max()])
    said = (
        f"; {mine.sum()} ratios may lie on either side: evaluations {apart:.3g} {unit} "
        f"apart leave {ends[0]:.3g} to {ends[1]:.3g}"
    )
    middles = (both.low + both.high)[mine] / 2
    away = np.abs(np.log(middles[:, 0] / middles[:, 1]) - border)
    needed = float(np.median(away / (1 / middles).sum(axis=1)))
    from ...simulator.scenario.scenario import Every  # which imports this to be read

    if needed < apart / LEAST_PART or counted not in Every.model_fields:
        return said
    if needed < 1 and counted in WHOLE:
        return f"{said}; evaluate.every of {{{counted}: 1}} is the finest"
    digit = 10.0 ** np.floor(np.log10(needed))
    period = float(f"{np.floor(needed / digit) * digit:.1g}")
    written = np.format_float_positional(period, trim="-")  # YAML reads no 2e-05
    return f"{said}; evaluate.every of {{{counted}: {written}}} may decide"
