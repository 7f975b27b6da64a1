"""Claims that one variant reaches a target faster than another."""

from ...simulator.claims.faster import Faster
from ...simulator.trace import StudyError
from .. import targets
from .measured import Frame, Measured
from .speed import ratio_to_target
from .verdict import Judged

LESS = {
    "time": "faster",
    "computation_s": "less computation",
    "communication_s": "less communication",
    "epsilon": "less epsilon",
}
"""The word for less time; anything else that is counted is fewer."""
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

    Their median counts, against `by_at_least`. A time lies between two evaluations, or
    after the last one, and so does the ratio of two: a replicate counts that is known
    to lie on one side of the border.

    Raises:
        StudyError: There is nothing to count in one of the groups.
    """
    ((metric, value),) = claim.to.items()
    counted = claim.counted_in
    sides = [measured.of(_to_target(claim), group) for group in (one, other)]
    for name, numbers in zip((one, other), sides, strict=True):
        if counted in NOT_EVERYWHERE and not numbers.known.any():
            raise StudyError(f"{NOT_EVERYWHERE[counted].format(name)} to be counted")
    words = f"times {LESS.get(counted, f'fewer {counted}')}"
    return ratio_to_target(claim, one, other, sides, f" to {metric} {value:g}", words)


def _to_target(claim: Faster) -> str:
    """Returns the name of what it took to reach the target."""
    ((metric, value),) = claim.to.items()
    return f"{claim.counted_in} to {metric} {value!r}"


def _times(metric: str, value: float, counted: str) -> Frame:
    return lambda study: targets.times_to_target(study, metric, value, counted)
