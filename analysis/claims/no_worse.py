"""Claims that final values of one variant are not worse than those of another."""

from ...simulator.claims.no_worse import NoWorse
from .final_values import difference
from .measured import Measured
from .verdict import Judged, judged, side


def judge(measured: Measured, claim: NoWorse, one: str, other: str) -> Judged:
    """Judges whether final values are worse by less than `within`, if they are worse.

    The median difference counts: the claim holds if it is worse by less than `within`,
    and does not hold if it is worse by more; it may be better by any amount.
    """
    metric, within = claim.metric, claim.within
    sample, said = difference(measured, metric, one, other)
    rising = measured.metric(metric).higher_is_better
    better = sample if rising else sample.mirrored
    why = f"difference against {-within if rising else within:g}{said}"
    evidence = side(better, -within)
    to = f" in {metric} to {within:g}"
    return judged(to, f"difference of {metric}", sample, evidence, why)
