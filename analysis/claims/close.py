"""Claims that final values of two variants are equivalent."""

from ...simulator.claims.close import Close
from .final_values import difference
from .measured import Measured
from .verdict import Judged, judged, near


def judge(measured: Measured, claim: Close, one: str, other: str) -> Judged:
    """Judges whether final values are equivalent, which is more than not different.

    The claim holds if the median difference is within `within` of zero, and does not
    hold if it is outside.
    """
    metric, within = claim.metric, claim.within
    sample, said = difference(measured, metric, one, other)
    evidence = near(sample, -within, within)
    why = f"whole interval within {within:g}, or outside{said}"
    to = f" in {metric} to {within:g}"
    return judged(to, f"difference of {metric}", sample, evidence, why)
