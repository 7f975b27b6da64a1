"""Claims that final values of one variant are larger than those of another."""

from analysis.claims.final_values import difference
from analysis.claims.measured import Measured
from analysis.claims.verdict import Judged, judged, side
from simulator.claims.higher import Higher


def judge(measured: Measured, claim: Higher, one: str, other: str) -> Judged:
    """Judges the median difference of final values against zero.

    A higher value need not be a better one.
    """
    metric = claim.metric
    sample, said = difference(measured, metric, one, other)
    why = f"difference against 0{said}"
    evidence = side(sample, 0.0)
    return judged(f" in {metric}", f"difference of {metric}", sample, evidence, why)
