"""Claims on the ratio of what runs of two variants come to."""

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from ..config.base import LocatedError
from .base import OfPair
from .entries import Of, Within


class Ratio(OfPair):
    """Has `is` times what `than` has: their ratio is `is`, to `within`."""

    named: ClassVar[str] = "ratio"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.ratio:judge"
    measured_by: ClassVar[str] = "stalesim.analysis.claims.ratio:quantities"
    lacking: ClassVar[str] = "of what; add of: virtual_s, is: 2, within: 1"
    words: ClassVar[str] = " against "

    ratio: str
    """Variant whose number is divided by that of `than`."""
    of: Of
    """Metric, of which final values count, or another quantity at the end of a run."""
    is_: Annotated[float, Field(alias="is", strict=True)]
    """Ratio, above 0."""
    within: Within
    """Largest distance of the ratio from `is`."""

    @model_validator(mode="after")
    def _positive(self) -> "Ratio":
        if not self.is_ > 0:
            raise LocatedError(
                f"is must be > 0 for a ratio, got {self.is_:g}; write a larger number",
                ("is",),
            )
        return self
