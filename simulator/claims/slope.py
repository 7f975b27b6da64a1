"""Claims on how fast a metric goes to zero."""

from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, model_validator

from ..config.base import LocatedError, Rule
from .base import Claim
from .entries import Metric, Within, known_to


class Slope(Claim):
    """Has a `metric` that falls with the commits like a power of them.

    The exponent is at most `is`, to `within`.
    """

    named: ClassVar[str] = "slope"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.slope:judge"
    measured_by: ClassVar[str] = "stalesim.analysis.claims.slope:quantities"
    lacking: ClassVar[str] = "which slope; add is: -1 and within: 0.25"
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
