"""Claims that one variant is ahead of another after some time."""

from typing import TYPE_CHECKING, Annotated, ClassVar, get_args

import numpy as np
from pydantic import Field, model_validator

from ...simulator.parts.base import LocatedError, Rule
from ...simulator.parts.text import suggestion
from ...simulator.scenario.claims.base import OfPair
from ...simulator.scenario.claims.entries import Metric
from .final_values import difference_of
from .numbers import Frame, Numbers
from .speed import Counted
from .verdict import Judged, judged, side

if TYPE_CHECKING:
    from .measured import Measured


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
                )
        if len(self.after) != 1:
            raise ValueError(f"must say {self.lacking}")
        return self

    @property
    def counted(self) -> str:
        return next(iter(self.after))

    def instants(self) -> dict[str, float]:
        return self.after

    def quantities(self) -> dict[str, Frame]:
        from ..instants import values_at

        ((counted, at),) = self.after.items()
        metric = self.metric
        return {self._at(): lambda study: values_at(study, metric, at, counted)}

    def judge(self, measured: "Measured", one: str, other: str) -> Judged:
        """Judges the median paired difference at an instant against `by`.

        It is turned so that more is better. A run that diverged before has the worst
        value, or a worse one; a pair of which one run ended before cannot be compared.
        """
        from ..instants import Instant

        metric, lead = self.metric, self.by
        when = Instant(*next(iter(self.after.items())))
        sides = [_diverged_by_then(measured.of(self._at(), g)) for g in (one, other)]
        sample, said = difference_of(sides, (one, other), f"a value after {when}")
        rising = measured.metric(metric).higher_is_better
        better = sample if rising else sample.mirrored
        to = f" in {metric} after {when}" + (f", by {lead:g}" if lead else "")
        why = f"difference against {lead if rising else 0.0 - lead:g}{said}"
        of = f"difference of {metric} after {when}"
        return judged(to, of, sample, side(better, lead), why)

    def _at(self) -> str:
        """Returns the name of the value at the claim's instant."""
        ((counted, at),) = self.after.items()
        return f"{self.metric} at {counted} {at!r}"


def _diverged_by_then(numbers: Numbers) -> Numbers:
    """Returns numbers of which those alone count as diverged that did so before."""
    is_lost = np.isinf(numbers.low) | np.isinf(numbers.high)
    return numbers._replace(diverged=numbers.diverged & is_lost)
