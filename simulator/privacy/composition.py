"""Composition of pure epsilons in closed form: basic, advanced, optimal.

Every function takes the distinct epsilons of the releases and how often each occurs,
and returns an epsilon that holds together with `delta`, in (0, 1), for an adversary who
may choose each mechanism after seeing the earlier ones.
"""

import math
from collections.abc import Sequence

import numpy as np
import scipy  # its parts are imported when they are used

_DEVIATIONS = 40.0
"""Losses further than this many standard deviations from their mean have probability
below 1e-300."""


def basic(epsilons: Sequence[float], counts: Sequence[int]) -> float:
    """Returns the sum of epsilons, which holds at delta 0.

    Source: Dwork, McSherry, Nissim and Smith (2006).
    """
    return math.fsum(n * e for e, n in zip(epsilons, counts, strict=True))


def advanced(epsilons: Sequence[float], counts: Sequence[int], delta: float) -> float:
    """Returns the Dwork-Rothblum-Vadhan epsilon.

    Sum of eps (e^eps - 1), plus sqrt(2 ln(1 / delta) sum of eps^2); it can exceed
    `basic`. For unequal epsilons it is implied by `kairouz`, which is smaller.

    Source: Dwork, Rothblum and Vadhan, Boosting and Differential Privacy (2010),
    Theorem III.3.
    """
    e, n = np.asarray(epsilons, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    with np.errstate(over="ignore"):
        drift = float(np.sum(n * e * np.expm1(e)))
    return drift + math.sqrt(2 * math.log(1 / delta) * float(np.sum(n * e * e)))


def kairouz(epsilons: Sequence[float], counts: Sequence[int], delta: float) -> float:
    """Returns the Kairouz-Oh-Viswanath closed bound for unequal epsilons.

    Source: Kairouz, Oh and Viswanath, The Composition Theorem for Differential Privacy
    (2015), Theorem 3.5 (3.4 where the epsilons are equal).
    """
    e, n = np.asarray(epsilons, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    drift = float(np.sum(n * e * np.tanh(e / 2)))
    squares = float(np.sum(n * e * e))
    tail = min(math.log(1 / delta), math.log(math.e + math.sqrt(squares) / delta))
    return min(basic(epsilons, counts), drift + math.sqrt(2 * squares * tail))


def optimal(epsilon: float, count: int, delta: float) -> float:
    """Returns the smallest epsilon of `count` releases of equal epsilon.

    Exact up to rounding: no smaller value holds for all mechanisms. Kairouz, Oh and
    Viswanath state it on the lattice epsilon * (count - 2 i); this is the same curve
    between those points. Sums are over logarithms of probabilities within 40 standard
    deviations, so that a million releases neither overflow nor fill the memory.

    Source: Kairouz, Oh and Viswanath (2015), Theorem 3.3; Murtagh and Vadhan, The
    Complexity of Computing the Optimal Composition of Differential Privacy (2016),
    Theorem 1.5.
    """
    if count == 0:
        return 0.0
    # Randomised response: each loss is +epsilon, or -epsilon with this probability.
    against = float(scipy.special.expit(-epsilon))
    middle = count * against
    reach = _DEVIATIONS * math.sqrt(middle * (1 - against)) + _DEVIATIONS
    first, last = max(0, math.floor(middle - reach)), math.ceil(middle + reach)
    i = np.arange(first, min(count, last) + 1, dtype=np.float64)
    loss = epsilon * (count - 2 * i)
    choose = -np.log(count + 1) - scipy.special.betaln(count - i + 1, i + 1)
    log_p = choose + (count - i) * math.log1p(-against) - i * np.logaddexp(0, epsilon)
    # delta(x) is the sum over losses above x of p - e^x p e^-loss, which are positive
    # there and negative below: the largest of all partial sums from the top.
    p = np.cumsum(np.exp(log_p))
    log_q = np.logaddexp.accumulate(log_p - loss)
    inside = p > delta
    if not inside.any():  # delta is within rounding of 1
        return 0.0
    candidates = np.log(p[inside] - delta) - log_q[inside]
    return max(0.0, float(candidates.max()))
