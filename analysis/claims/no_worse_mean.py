"""Claims that the mean of final values over a sweep is not worse."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...simulator.claims.base import OfPair
from ...simulator.claims.entries import Metric, Within
from ...simulator.config.errors import StudyError
from .. import bounds
from .final_values import remarks
from .numbers import Numbers, final, together
from .sweeps import swept
from .verdict import Judged, judged, side

if TYPE_CHECKING:
    from .measured import Measured


class NoWorseMean(OfPair):
    """Has final values of `metric` that are worse by little on average over a sweep.

    That is by less than `within`, averaged over all swept values of `over`, such as
    networks, which is one number of each replicate.
    """

    named: ClassVar[str] = "no_worse_mean"
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

    def judge(self, measured: "Measured", *groups: str) -> Judged:
        """Judges whether a mean over a sweep is worse by less than `within`.

        The mean over the swept values is one number of each replicate, of which the
        median counts: swept values, such as networks, are those of the study and no
        sample of others. What diverged counts as in `no_worse`.

        Raises:
            StudyError: The key is not swept, or others are as well.
        """
        metric, within, over = self.metric, self.within, self.over
        one, other = (
            swept(measured, over, name, groups)
            for name in (self.no_worse_mean, self.than)
        )
        sides: list[Numbers] = []
        said = ""
        for value, group in one.items():
            if value not in other:
                raise StudyError(f"{self.than} has no runs at {over} {value}")
            for name in (group, other[value]):
                sides.append(measured.of(final(metric), name))
                said += remarks(sides[-1], name)
        weights = np.tile([1.0, -1.0], len(one)) / len(one)
        sample = bounds.contrast(together(*sides), weights)
        rising = measured.metric(metric).higher_is_better
        better = sample if rising else sample.mirrored
        to = f" in {metric} to {within:g}, averaged over {over}"
        why = f"difference against {-within if rising else within:g}{said}"
        evidence = side(better, -within)
        return judged(to, f"mean difference of {metric}", sample, evidence, why)
