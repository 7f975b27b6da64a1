"""Claims that one variant is ahead of another after some time."""

from typing import Annotated, ClassVar, get_args

from pydantic import Field, model_validator

from ..config.base import LocatedError, Rule
from ..config.text import suggestion
from .base import OfPair
from .entries import Metric
from .faster import Counted

After = Annotated[
    dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
    Rule("one count and how far it has come", "{time: 60}"),
]
"""Instant of a run: what is counted, and its value."""


class Ahead(OfPair):
    """Has a better value of `metric` than `than` after so much time, or commits.

    Better is larger for an accuracy and smaller for a loss. The value is that of the
    last evaluation up to then.
    """

    named: ClassVar[str] = "ahead"
    judged_by: ClassVar[str] = "stalesim.analysis.claims.ahead:judge"
    measured_by: ClassVar[str] = "stalesim.analysis.claims.ahead:quantities"
    lacking: ClassVar[str] = "after how much time; add after: {time: 60}"
    words: ClassVar[str] = " ahead of "

    ahead: str
    """Variant that is ahead."""
    metric: Metric = "test_accuracy"
    """Metric that is looked at."""
    after: After
    """Instant: virtual seconds, or another count."""
    by: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Smallest lead, in the unit of the metric."""

    @model_validator(mode="after")
    def _one_instant(self) -> "Ahead":
        known = get_args(Counted)
        for counted in self.after:
            if counted not in known:
                raise LocatedError(
                    f"after must count one of {', '.join(known)}, got {counted!r}; "
                    f"{suggestion(counted, known)}",
                    ("after",),
                )
        if len(self.after) != 1:
            raise ValueError(f"must say {self.lacking}")
        return self
