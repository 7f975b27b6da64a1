"""Verdicts: on which side of a border, or how near to a number, an interval lies."""

from typing import NamedTuple

from analysis.statistics import ROUNDING, Interval

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
LEAST = 3
"""Replicates below which nothing is decided."""
NOTHING = Interval(float("nan"), float("nan"), float("nan"))


class Judged(NamedTuple):
    """A verdict on groups; the words that complete the claim come first."""

    to: str
    verdict: str
    measured: str
    interval: Interval
    replicates: int
    why: str


def side(interval: Interval, border: float) -> str:
    """Says on which side of a border an interval lies, if on one."""
    if interval.low > border:
        return HOLDS
    return FAILS if interval.high < border else OPEN


def near(interval: Interval, number: float, within: float) -> str:
    """Says whether an interval lies wholly within some distance of a number, or beyond.

    Rounding does not count: an interval of no width may lie on the border.
    """
    slack = ROUNDING * (abs(number) + within)
    low, high = number - within - slack, number + within + slack
    if low <= interval.low and interval.high <= high:
        return HOLDS
    return FAILS if interval.low > high or interval.high < low else OPEN
