"""Claims that the mean of a metric over a run obeys a bound."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, ValidationInfo, model_validator

from ...simulator.claims.base import Claim
from ...simulator.claims.entries import Metric, known_to
from ...simulator.config.base import LocatedError
from .. import bounds
from ..statistics import ROUNDING
from .final_values import alone
from .numbers import Frame
from .slope import run_mean
from .verdict import Evidence, Judged, judged

if TYPE_CHECKING:
    from .measured import Measured


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
        from ..curves import run_means

        metric = self.metric
        return {run_mean(metric): lambda study: run_means(study, metric)}

    def judge(self, measured: "Measured", name: str) -> Judged:
        """Judges whether the mean over a run is at most `bound`, in the typical run.

        The claim holds if the median of the runs' means is below the bound, and does
        not hold if it is above. A run that diverged has no less than the worst value
        that was seen.
        """
        metric, border = self.metric, self.bound
        sample, said = alone(measured.of(run_mean(metric), name), name)
        slack = ROUNDING * (1 + abs(border))  # a mean may be the bound
        evidence = Evidence(
            bounds.below(sample, border + slack), bounds.above(sample, border + slack)
        )
        to = f": mean {metric} at most {border:g}"
        why = f"mean over the run against {border:g}{said}"
        return judged(to, f"mean {metric}", sample, evidence, why)
