"""Claims that final values of one variant are not worse than those of another."""

from typing import TYPE_CHECKING, ClassVar

from ...simulator.claims.base import OfPair
from ...simulator.claims.entries import Metric, Within
from .final_values import difference
from .verdict import Judged, judged, side

if TYPE_CHECKING:
    from .measured import Measured


class NoWorse(OfPair):
    """Has final values of `metric` that are worse than those of `than` by little.

    That is by less than `within`; they may be better by any amount.
    """

    named: ClassVar[str] = "no_worse"
    lacking: ClassVar[str] = "how much worse at most; add within: 0.01"
    words: ClassVar[str] = " no worse than "

    no_worse: str
    """Variant that is no worse."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    within: Within
    """Largest loss that counts as none, in the unit of the metric."""

    def judge(self, measured: "Measured", one: str, other: str) -> Judged:
        """Judges whether final values are worse by less than `within`, if at all.

        The median difference counts: the claim holds if it is worse by less than
        `within`, and does not hold if it is worse by more; it may be better by any
        amount.
        """
        metric, within = self.metric, self.within
        sample, said = difference(measured, metric, one, other)
        rising = measured.metric(metric).higher_is_better
        better = sample if rising else sample.mirrored
        why = f"difference against {-within if rising else within:g}{said}"
        evidence = side(better, -within)
        to = f" in {metric} to {within:g}"
        return judged(to, f"difference of {metric}", sample, evidence, why)
