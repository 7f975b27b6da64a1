"""Claims that final values grow along a sweep, or fall."""

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ...simulator.claims.base import Claim
from ...simulator.claims.entries import Metric, Within
from .. import bounds
from .sweeps import along
from .verdict import NONE, NOTHING, Evidence, Judged, judged, side

if TYPE_CHECKING:
    from .measured import Measured

WORDS = {"rising": ("rises", "rise"), "falling": ("falls", "fall")}
"""Words for a direction, of the swept values and of a step."""


class Monotone(Claim):
    """Has a final value of `metric` that grows with the swept `over`, or falls.

    With `than`, its difference from that variant's does.
    """

    named: ClassVar[str] = "monotone"
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

    def variants(self) -> dict[str, tuple[str, ...]]:
        """Returns the variants that the claim names, by entry."""
        return super().variants() | ({"than": (self.than,)} if self.than else {})

    def judge(self, measured: "Measured", *groups: str) -> Judged:
        """Judges whether final values grow along a sweep, or whether they fall.

        The claim holds if they do from the first to the last swept value, and if no
        step from one to the next goes the other way by `within`: all must pass. It does
        not hold if one fails, by Bonferroni's correction.
        """
        metric, over, within = self.metric, self.over, self.within
        sign = 1.0 if self.direction == "rising" else -1.0
        verb, noun = WORDS[self.direction]
        names, sample, said = along(measured, self, groups)
        to = f": {metric} {verb} with {over}" + (f", to {within:g}" if within else "")
        if len(names) < 2:
            return Judged(to, NONE, "", NOTHING, 0, f"{over} has fewer than two values")
        steps = [
            bounds.contrast(sample, sign * step)
            for step in np.diff(np.eye(len(names)), 1, 0)
        ]
        ends = np.eye(len(names))[-1] - np.eye(len(names))[0]
        found = [side(bounds.contrast(sample, sign * ends), 0.0)]
        found += [side(step, 0.0 - within) for step in steps if len(steps) > 1]
        evidence = Evidence(
            max(step.for_it for step in found),
            min(1.0, len(found) * min(step.against for step in found)),
        )
        sizes = [bounds.interval(step).mean for step in steps]
        least = int(np.argmin(np.nan_to_num(sizes, nan=-np.inf)))
        of = f"smallest {noun}, {names[least]} to {names[least + 1]}"
        why = f"every step against {0.0 - within:g}{said}"
        return judged(to, of, steps[least], evidence, why)
