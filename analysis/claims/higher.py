"""Claims that final values of one variant are larger than those of another."""

from ...simulator.claims.higher import Higher
from .final_values import difference
from .measured import Measured
from .verdict import Judged, judged, side


def judge(measured: Measured, claim: Higher, one: str, other: str) -> Judged:
    """Judges the median difference of final values against zero.

    A higher value need not be a better one.
    """
    metric = claim.metric
    sample, said = difference(measured, metric, one, other)
    why = f"difference against 0{said}"
    evidence = side(sample, 0.0)
    return judged(f" in {metric}", f"difference of {metric}", sample, evidence, why)
