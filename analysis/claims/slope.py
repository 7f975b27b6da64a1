"""Claims on a metric that falls over a run: how fast, and its mean."""

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field, ValidationInfo, model_validator

from ...simulator.parts.base import LocatedError, Rule
from ...simulator.scenario.claims.base import Claim, Metric, Within, known_to
from .. import bounds
from ..bounds import Sample
from ..statistics import ROUNDING, log_log_slope
from .final_values import alone
from .numbers import Frame, horizon
from .verdict import Evidence, Judged, judged

if TYPE_CHECKING:
    from .measured import Measured


class Slope(Claim):
    """Has a `metric` that falls with the commits like a power of them.

    The exponent is at most `is`, to `margin`.
    """

    named: ClassVar[str] = "slope"
    lacking: ClassVar[str] = "which slope; add is: -1 and margin: 0.25"
    compares: ClassVar[bool] = False

    slope: Annotated[
        str | tuple[str, ...],
        Rule("a variant, or a list of variants with different horizons", "async"),
    ]
    """One variant: slope of the metric over the last decade of its commits. Several:
    slope of their means over all commits, against how many those are."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    is_: Annotated[float, Field(alias="is", strict=True)]
    """Exponent of a bound, which a steeper fall obeys."""
    within: Within
    """Largest amount by which the exponent may exceed `is`."""

    @model_validator(mode="after")
    def _falls(self, info: ValidationInfo) -> "Slope":
        if known_to(info, self.metric).higher_is_better:
            raise LocatedError(
                f"metric must go to zero to have a slope, got {self.metric!r}; write "
                f"for example metric: optimality_gap",
                ("metric",),
            )
        slope = self.slope
        if not isinstance(slope, str) and not 2 <= len(slope) == len({*slope}):
            raise LocatedError(
                f"slope must list two or more different variants, got "
                f"[{', '.join(slope)}]; name one without a list, or add another",
                ("slope",),
            )
        return self

    def quantities(self) -> dict[str, Frame]:
        from ..curves import decade_slopes

        metric = self.metric
        if isinstance(self.slope, str):
            return {_decade_slope(metric): lambda study: decade_slopes(study, metric)}
        return _run_means(metric)

    def judge(self, measured: "Measured", *names: str) -> Judged:
        """Judges whether the median exponent is at most `is` + `margin`.

        A metric may fall faster than a theorem bounds it.
        """
        metric, border = self.metric, self.is_ + self.within
        if len(names) == 1:
            numbers = measured.of(_decade_slope(metric), *names)
            of, every = metric, Sample(numbers.low, numbers.high)
        else:
            of, every = f"mean {metric}", _over_horizons(measured, names, metric)
        known = ~np.isnan(every.low)
        sample = Sample(every.low[known], every.high[known])
        evidence = _at_most(sample, border)
        why = f"slope against {border:g}"
        if diverged := int(np.isinf(sample.high).sum()):
            why += f"; {diverged} replicates diverged and do not fall"
        if unknown := int((~known).sum()):
            why += f"; {unknown} replicates without a slope"
        to = f": slope of {of} at most {self.is_:g} to {self.within:g}"
        return judged(to, "slope", sample, evidence, why)


class Below(Claim):
    """Has a `metric` whose mean over all commits of a run is at most `bound`."""

    named: ClassVar[str] = "below"
    lacking: ClassVar[str] = "which bound; add bound: 0.5"
    compares: ClassVar[bool] = False

    below: str
    """Variant whose mean is bounded."""
    metric: Metric = "gradient_norm_squared"
    """Metric that is compared."""
    bound: Annotated[float, Field(strict=True)]
    """Bound of a theorem on the mean, in the unit of the metric."""

    @model_validator(mode="after")
    def _falls(self, info: ValidationInfo) -> "Below":
        if known_to(info, self.metric).higher_is_better:
            raise LocatedError(
                f"metric must be one that is small at best, got {self.metric!r}; write "
                f"for example metric: objective",
                ("metric",),
            )
        return self

    def quantities(self) -> dict[str, Frame]:
        return _run_means(self.metric)

    def judge(self, measured: "Measured", name: str) -> Judged:
        """Judges whether the median of the runs' means is at most `bound`.

        The mean of a run that diverged is no less than the worst value that was seen.
        """
        metric, border = self.metric, self.bound
        sample, said = alone(measured.of(_run_mean(metric), name), name)
        evidence = _at_most(sample, border)
        to = f": mean {metric} at most {border:g}"
        why = f"mean over the run against {border:g}{said}"
        return judged(to, f"mean {metric}", sample, evidence, why)


def _over_horizons(measured: "Measured", names: tuple[str, ...], metric: str) -> Sample:
    """Returns how the mean of each replicate falls with the horizon of its runs."""
    means = [measured.of(_run_mean(metric), name) for name in names]
    last = [measured.of(horizon(_run_mean(metric)), name) for name in names]
    common = sorted(set.intersection(*(set(side.replicates) for side in means)))
    low, high = np.full(len(common), 0.0), np.full(len(common), np.inf)
    for row, replicate in enumerate(common):
        at = [int(np.searchsorted(side.replicates, replicate)) for side in means]
        pairs = list(zip(means, last, at, strict=True))
        if not any(np.isinf([side.low[i], side.high[i]]).any() for side, _, i in pairs):
            low[row] = high[row] = log_log_slope(
                np.array([side.low[i] for _, side, i in pairs]),
                np.array([side.low[i] for side, _, i in pairs]),
            )
    return Sample(low, high)


def _decade_slope(metric: str) -> str:
    return f"slope of {metric}"


def _run_mean(metric: str) -> str:
    return f"mean {metric}"


def _run_means(metric: str) -> dict[str, Frame]:
    from ..curves import run_means

    return {_run_mean(metric): lambda study: run_means(study, metric)}


def _at_most(sample: Sample, border: float) -> Evidence:
    border += ROUNDING * (1 + abs(border))
    return Evidence(bounds.below(sample, border), bounds.above(sample, border))
