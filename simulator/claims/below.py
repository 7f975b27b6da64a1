"""Claims that the mean of a metric over a run obeys a bound."""

from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, model_validator

from ..config.base import LocatedError
from .base import Claim
from .entries import Metric, known_to


class Below(Claim):
    """Has a `metric` whose mean over all commits of a run is at most `bound`."""

    named: ClassVar[str] = "below"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.below:judge"
    measured_by: ClassVar[str] = "stalesim.analysis.claims.below:quantities"
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
