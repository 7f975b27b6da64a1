"""Evidence for a claim and against it, as p-values."""

from typing import NamedTuple

import numpy as np

from ..bounds import Sample, above, below, in_words, interval, side_of_median
from ..statistics import ROUNDING, UNKNOWN, Interval

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
UNDECIDABLE = "not decidable"
"""Verdict where the replicates are too few for their family of claims."""
UNDECIDED = (OPEN, UNDECIDABLE)
PRINTED = {OPEN: "inconclusive", UNDECIDABLE: "underpowered"}
"""The field's words for verdicts, where people read them; tables keep ours."""


class Evidence(NamedTuple):
    """One-sided p-values.

    Attributes:
        for_it: P-value of the border's other side, where the claim is not true.
        against: P-value of the border's own side, where the claim is true.
    """

    for_it: float
    against: float

    @property
    def p(self) -> float:
        """Two-sided p-value; NaN where nothing could be tested."""
        return float("nan") if np.isnan(self.for_it) else min(1.0, 2 * min(self))


NONE = Evidence(float("nan"), float("nan"))
"""Evidence where nothing could be tested."""


class Judged(NamedTuple):
    """Judgement of some groups; the words that complete the claim come first."""

    to: str
    evidence: Evidence
    measured: str
    interval: Interval
    replicates: int
    why: str


def side(sample: Sample, border: float) -> Evidence:
    """Judges whether a median is above a threshold.

    Rounding does not count: a number equal to the threshold is on neither side.
    """
    slack = ROUNDING * (1 + abs(border))
    return Evidence(above(sample, border + slack), below(sample, border - slack))


def near(sample: Sample, low: float, high: float) -> Evidence:
    """Judges whether a median lies between two numbers: two one-sided tests.

    Both must favour it, and either may oppose it. Rounding does not count: a number may
    be equal to a threshold.

    Source: Schuirmann, A comparison of the two one-sided tests procedure and the power
    approach for assessing the equivalence of average bioavailability (Journal of
    Pharmacokinetics and Biopharmaceutics 1987).
    """
    slack = ROUNDING * (1 + max(abs(x) for x in (low, high) if np.isfinite(x)))
    low, high = low - slack, high + slack
    sides = []  # an infinite end excludes nothing
    if np.isfinite(low):
        sides.append(Evidence(above(sample, low), below(sample, low)))
    if np.isfinite(high):
        sides.append(Evidence(below(sample, high), above(sample, high)))
    return Evidence(max(s.for_it for s in sides), min(s.against for s in sides))


def all_of(parts: list[Evidence]) -> Evidence:
    """Returns the evidence for all of several claims: all must pass, or one must fail.

    One fails by Bonferroni's correction.
    """
    against = len(parts) * min(part.against for part in parts)
    return Evidence(max(part.for_it for part in parts), min(1.0, against))


def judged(
    to: str,
    of: str,
    sample: Sample,
    evidence: Evidence,
    why: str,
    *,
    logs: bool = False,
) -> Judged:
    """Returns the judgement of a sample, with its median and its interval.

    Args:
        to: Words that complete the claim.
        of: Name of the sample, for the text.
        sample: Number of each replicate.
        evidence: Evidence that it gives.
        why: Reason, as text.
        logs: Whether its numbers are logarithms.
    """
    n = sample.low.size
    if not n:
        return Judged(to, NONE, "", UNKNOWN, 0, why)
    found = interval(sample)
    if logs:
        found = Interval(*(float(end) for end in np.exp(found)))
    measured = f"{of}: {side_of_median(sample)}{in_words(found, n)}"
    return Judged(to, evidence, measured, found, n, why)
