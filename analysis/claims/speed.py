"""The ratio of what it takes two variants to reach a target."""

import numpy as np

from analysis import bounds
from analysis.bounds import EXACT
from analysis.claims.measured import Numbers
from analysis.claims.verdict import NONE, NOTHING, Judged, side
from analysis.statistics import Interval
from simulator.claims.faster import Faster
from simulator.claims.fewer import Fewer


def ratio_to_target(
    claim: Faster | Fewer,
    one: str,
    other: str,
    sides: list[Numbers],
    to: str,
    words: str,
) -> Judged:
    """Judges the ratio of times, or of counts, until something was reached."""
    least = claim.by_at_least
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
