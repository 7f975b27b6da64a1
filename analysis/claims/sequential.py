"""Corrects p-values for several interim analyses and for many claims.

A study that is analysed again and again, and stopped at will, is wrong more often than
once in twenty. So interim analyses are planned. A p-value at one of them is weighed by
the square of the share of the plan's replicates available by then, so that early ones
take little from the last. Its corrected value is a probability: that at any analysis of
the plan, a sign test of a claim exactly at its threshold has a p-value of this weight.
That probability is exact: the signs of replicates are then fair coins.

Source: Jennison and Turnbull, Group Sequential Methods (2000), chapters 7 and 12, for
exact plans of binary observations and powers of the fraction; Maurer and Bretz,
Multiple testing in group sequential trials using graphical approaches (Statistics in
Biopharmaceutical Research 2013), for Holm's correction of the result.
"""

import math
from functools import cache

import numpy as np
from jaxtyping import Float

MOST_PARTS = 40
"""Most p-values of which one may be the least, times their number (Bonferroni)."""


def overall(chance: float, replicates: int, looks: tuple[int, ...]) -> float:
    """Returns the corrected value of a p-value at one analysis over the whole plan.

    Deciding where it is at most 0.05 decides wrongly at any analysis with a probability
    of at most 0.05. This is so for a sign test, for the largest of some, and for the
    least of several times their number.

    Args:
        chance: Two-sided p-value.
        replicates: Replicates of the analysis; one of `looks`, if there are any.
        looks: Replicates at each analysis of the plan; none without a plan.
    """
    if not looks or math.isnan(chance):
        return chance
    heavy = chance / _weight(replicates, looks)
    return min(1.0, max(k * _crossed(heavy / k, looks) for k in range(1, MOST_PARTS)))


def least(family: int, looks: tuple[int, ...] = ()) -> int | None:
    """Returns the least replicates that can decide a claim of a family.

    That is where all replicates favour it, by Holm's correction at 5 %. None where no
    analysis of the plan has this number.
    """
    for n in looks or range(1, 1_000):
        if family * overall(2.0 ** (1 - n), n, looks) <= ERROR:
            return n
    return None


ERROR = 0.05
"""Error of a family of claims, two-sided."""


def _weight(replicates: int, looks: tuple[int, ...]) -> float:
    return (replicates / looks[-1]) ** 2


@cache
def _crossed(heavy: float, looks: tuple[int, ...]) -> float:
    """Returns the chance that some look has a p-value over its weight up to `heavy`."""
    from scipy.special import bdtrc  # half a second, also to read a scenario
    from scipy.stats import binom

    going, before, crossed = np.ones(1), 0, 0.0
    for n in looks:
        steps = binom.pmf(np.arange(n - before + 1), n - before, 0.5)
        going, before = np.convolve(going, steps), n
        signs = np.arange(n + 1)
        more = np.maximum(signs, n - signs)
        chances = np.minimum(1.0, 2 * bdtrc(more - 1.0, n, 0.5))
        over = chances <= heavy * _weight(n, looks) * (1 + 1e-12)
        crossed += float(going[over].sum())
        going[over] = 0.0
    return crossed


def holm(chances: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """Returns p-values that hold for a whole family, by Holm's step-down correction.

    Deciding all claims whose corrected value is at most 0.05 decides any of them
    wrongly with a chance of at most 0.05, however the claims depend on each other.

    Args:
        chances: p-values of the family; NaN for a claim that could not be measured,
            which counts as one.

    Source: Holm, A simple sequentially rejective multiple test procedure (Scandinavian
    Journal of Statistics 1979).
    """
    known = np.nan_to_num(np.asarray(chances, np.float64), nan=1.0)
    order = np.argsort(known, kind="stable")
    factors = np.arange(known.size, 0, -1)
    stepped = np.minimum(1.0, np.maximum.accumulate(factors * known[order]))
    corrected = np.empty_like(known)
    corrected[order] = stepped
    return corrected
