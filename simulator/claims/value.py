"""Claims that final values are some number."""

from typing import Annotated, ClassVar

from pydantic import Field

from .base import Claim
from .entries import Metric, Within


class Value(Claim):
    """Has a final value of `metric` that is `is`, to `within`."""

    named: ClassVar[str] = "value"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.value:judge"
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
