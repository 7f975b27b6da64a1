"""Claims on the ratio of what runs of two variants come to."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from ...simulator.claims.base import OfPair
from ...simulator.claims.entries import Of, Within
from ...simulator.config.base import LocatedError
from ...simulator.metrics import QUANTITIES
from .. import bounds
from .final_values import DIFFERENCE, remarks
from .numbers import Frame, final, final_frame, together
from .verdict import Judged, judged, near

if TYPE_CHECKING:
    from .measured import Measured


class Ratio(OfPair):
    """Has `is` times what `than` has: their ratio is `is`, to `within`."""

    named: ClassVar[str] = "ratio"
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

    def quantities(self) -> dict[str, Frame]:
        of = self.of
        return {_end(of): _at_end(of) if of in QUANTITIES else final_frame(of)}

    def judge(self, measured: "Measured", one: str, other: str) -> Judged:
        """Judges whether the ratio of two sides is the claimed one.

        The median over pairs of replicates counts. A number that cannot be above zero
        has no ratio: its pair counts for neither side.
        """
        of, expected, within = self.of, self.is_, self.within
        sides = [measured.of(_end(of), group) for group in (one, other)]
        said = "".join(map(remarks, sides, (one, other)))
        sample = bounds.contrast(bounds.logarithm(together(*sides)), DIFFERENCE)
        if none := int((np.isinf(sample.low) & np.isinf(sample.high)).sum()):
            said += f"; {none} pairs without a ratio of numbers above 0"
        lowest = np.log(expected - within) if expected > within else -np.inf
        evidence = near(sample, float(lowest), float(np.log(expected + within)))
        to = f": ratio of {of} is {expected:g} to {within:g}"
        why = f"ratio within {within:g} of {expected:g}, or outside{said}"
        return judged(to, f"ratio of {of}", sample, evidence, why, logs=True)


def _end(of: str) -> str:
    """Returns the name of what a run has come to."""
    return f"{of} at the end" if of in QUANTITIES else final(of)


def _at_end(of: str) -> Frame:
    """Returns what runs came to; one that diverged would have come to more."""
    from ..frames import runs
    from ..targets import final_quantities

    def measured(study: Any) -> Any:
        table = final_quantities(study, of, diverged=True)
        lost = (runs(study)["stop"] == "diverged").to_numpy(bool)
        return table.assign(low=table["value"], high=table["value"].mask(lost, np.inf))

    return measured
