"""Claims that final values are some number."""

from ...simulator.claims.value import Value
from .final_values import of_group
from .measured import Measured
from .verdict import Judged, judged, near


def judge(measured: Measured, claim: Value, name: str) -> Judged:
    """Judges whether the median final value is `is`, to `within`.

    The claim holds if the median is within `within` of `is`, and does not hold if it is
    outside.
    """
    metric, expected, within = claim.metric, claim.is_, claim.within
    sample, said = of_group(measured, metric, name)
    evidence = near(sample, expected - within, expected + within)
    to = f": {metric} is {expected:g} to {within:g}"
    why = f"whole interval within {within:g} of {expected:g}, or outside{said}"
    return judged(to, metric, sample, evidence, why)
