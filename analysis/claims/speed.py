"""Claims on what it takes to reach a target: `faster` and `fewer`."""

from typing import Any

import numpy as np

from analysis import bounds
from analysis.bounds import EXACT
from analysis.claims.judged import NONE, NOTHING, Judged, side
from analysis.claims.measured import TO_STOP, Measured, Numbers, to_target
from analysis.statistics import Interval
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
"""What cannot be counted in every run."""


def faster(measured: Measured, claim: dict[str, Any], one: str, other: str) -> Judged:
    """Judges the ratio of times to a target, replicate by replicate.

    A replicate in which one side did not reach the target bounds its ratio from one
    side. The mean of such bounds bounds the mean ratio, so they can speak for a claim
    (the slower did not arrive) or against it (the faster did not).

    Raises:
        StudyError: there is nothing to count in one of the groups.
    """
    ((metric, value),) = claim["to"].items()
    counted = claim.get("counted_in", "time")
    sides = [measured.of(to_target(claim), group) for group in (one, other)]
    for name, numbers in zip((one, other), sides, strict=True):
        if counted in NOT_EVERYWHERE and np.isnan(numbers.values).all():
            raise StudyError(f"{NOT_EVERYWHERE[counted].format(name)} to be counted")
    words = f"times {LESS.get(counted, f'fewer {counted}')}"
    return _ratio(claim, one, other, sides, f" to {metric} {value:g}", words)


def fewer(measured: Measured, claim: dict[str, Any], one: str, other: str) -> Judged:
    """Judges the ratio of commits until runs stopped at their target."""
    sides = [measured.of(TO_STOP, group) for group in (one, other)]
    return _ratio(claim, one, other, sides, " to the target", "times fewer commits")


def _ratio(
    claim: dict[str, Any],
    one: str,
    other: str,
    sides: list[Numbers],
    to: str,
    words: str,
) -> Judged:
    """Judges the ratio of times, or of counts, until something was reached."""
    least = claim.get("by_at_least", 1.0)
    if least != 1:
        to += f", {least:g} times"
    fast, slow = sides
    _, *rows = np.intersect1d(fast.replicates, slow.replicates, return_indices=True)
    fast, slow = (
        Numbers(*(column[these] for column in numbers))
        for numbers, these in zip(sides, rows, strict=True)
    )
    n = fast.values.size
    did_fast, did_slow = fast.bounds == EXACT, slow.bounds == EXACT
    reached = f"reached {did_fast.sum()}/{n} and {did_slow.sum()}/{n}"
    if not did_fast.all() and not did_slow.all():
        why = "neither side always reached the target"
        return Judged(to, NONE, reached, NOTHING, n, why)
    if not (fast.values.all() and slow.values.all()):
        why = "the target was reached before anything was learned"
        return Judged(to, NONE, reached, NOTHING, n, why)
    sample = bounds.difference(
        np.log(slow.values), np.log(fast.values), slow.bounds, fast.bounds
    )
    # That all of one side did not arrive says nothing of by how much it was later.
    evidence = side(sample._replace(chance=1.0), float(np.log(least)))
    interval = Interval(*(float(end) for end in np.exp(bounds.interval(sample))))
    why = f"ratio against {least:g}"
    if not did_slow.all():
        why = f"ratio is a lower bound: {other} is censored"
    elif not did_fast.all():
        why = f"ratio is an upper bound: {one} is censored"
    return Judged(to, evidence, f"{words}: {interval}; {reached}", interval, n, why)
