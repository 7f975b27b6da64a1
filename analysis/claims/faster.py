"""Claims that one variant reaches a target faster than another."""

import numpy as np
import pandas as pd

from analysis import targets
from analysis.bounds import AT_LEAST, EXACT
from analysis.claims.measured import Frame, Measured
from analysis.claims.speed import ratio_to_target
from analysis.claims.verdict import Judged
from analysis.frames import Study
from simulator.claims.faster import Faster
from simulator.trace import StudyError

LESS = {
    "time": "faster",
    "computation_s": "less computation",
    "communication_s": "less communication",
    "epsilon": "less epsilon",
}
"""How much less is said; of what else is counted there are fewer."""
NOT_EVERYWHERE = {
    "rounds": "the protocol of {} has no rounds",
    "epsilon": "the runs of {} have no epsilon",
}
"""Counts that not every run has."""


def quantities(claim: Faster) -> dict[str, Frame]:
    """Returns what it took to reach the target."""
    ((metric, value),) = claim.to.items()
    return {_to_target(claim): _times(metric, value, claim.counted_in)}


def judge(measured: Measured, claim: Faster, one: str, other: str) -> Judged:
    """Judges the ratio of times to a target, replicate by replicate.

    The geometric mean of the ratios counts, against `by_at_least`.
    A replicate in which one side did not reach the target bounds its ratio from one
    side. The mean of such bounds bounds the mean ratio, so they can speak for a claim
    (the slower did not arrive) or against it (the faster did not).

    Raises:
        StudyError: There is nothing to count in one of the groups.
    """
    ((metric, value),) = claim.to.items()
    counted = claim.counted_in
    sides = [measured.of(_to_target(claim), group) for group in (one, other)]
    for name, numbers in zip((one, other), sides, strict=True):
        if counted in NOT_EVERYWHERE and np.isnan(numbers.values).all():
            raise StudyError(f"{NOT_EVERYWHERE[counted].format(name)} to be counted")
    words = f"times {LESS.get(counted, f'fewer {counted}')}"
    return ratio_to_target(claim, one, other, sides, f" to {metric} {value:g}", words)


def _to_target(claim: Faster) -> str:
    """Returns the name of what it took to reach the target."""
    ((metric, value),) = claim.to.items()
    return f"{claim.counted_in} to {metric} {value!r}"


def _times(metric: str, value: float, counted: str) -> Frame:
    def measured(study: Study) -> pd.DataFrame:
        table = targets.times_to_target(study, metric, value, counted)
        bounds = np.where(table["reached"], EXACT, AT_LEAST)
        return table.assign(value=table["time"], bound=bounds)

    return measured
