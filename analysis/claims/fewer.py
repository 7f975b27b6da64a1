"""Claims that one variant stops at its target after fewer commits than another."""

from ...simulator.claims.fewer import Fewer
from ..targets import commits_to_stop
from .measured import Frame, Measured
from .speed import ratio_to_target
from .verdict import Judged

TO_STOP = "commits to the target"


def quantities(claim: Fewer) -> dict[str, Frame]:
    """Returns the commits until runs stopped at their target."""
    del claim
    return {TO_STOP: commits_to_stop}


def judge(measured: Measured, claim: Fewer, one: str, other: str) -> Judged:
    """Judges the ratio of commits until runs stopped at their target.

    The median of the ratios counts, against `by_at_least`, as that of `faster`.
    """
    sides = [measured.of(TO_STOP, group) for group in (one, other)]
    words = "times fewer commits"
    return ratio_to_target(claim, one, other, sides, " to the target", words)
