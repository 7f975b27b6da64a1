"""Claims that final values are some number."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from ...simulator.claims.base import Claim
from ...simulator.claims.entries import Metric, Within
from .final_values import of_group
from .verdict import Judged, judged, near

if TYPE_CHECKING:
    from .measured import Measured


class Value(Claim):
    """Has a final value of `metric` that is `is`, to `within`."""

    named: ClassVar[str] = "value"
    lacking: ClassVar[str] = "which value; add is: 0.9 and within: 0.01"
    compares: ClassVar[bool] = False

    value: str
    """Variant with the value."""
    metric: Metric = "test_accuracy"
    """Metric that is compared."""
    is_: Annotated[float, Field(alias="is", strict=True)]
    """Value, in the unit of the metric."""
    within: Within
    """Largest distance of the value from `is`."""

    def targets(self) -> Iterator[tuple[tuple[str, ...], str, float]]:
        """Yields the value that the metric is to reach."""
        yield ("is",), self.metric, self.is_

    def judge(self, measured: "Measured", name: str) -> Judged:
        """Judges whether the median final value is `is`, to `within`.

        The claim holds if the median is within `within` of `is`, and does not hold if
        it is outside.
        """
        metric, expected, within = self.metric, self.is_, self.within
        sample, said = of_group(measured, metric, name)
        evidence = near(sample, expected - within, expected + within)
        to = f": {metric} is {expected:g} to {within:g}"
        why = f"whole interval within {within:g} of {expected:g}, or outside{said}"
        return judged(to, metric, sample, evidence, why)
