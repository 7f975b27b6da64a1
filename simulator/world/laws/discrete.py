"""Quantiles and chances of SciPy's discrete laws that have no form of their own.

SciPy searches these quantiles itself, and ends in an error where the place at which it
begins happens to be the quantile. The chance of at most k is often a sum over all
values up to k, which takes 20 GB for 10^9.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from ...parts.errors import ScenarioError
from .usual import Usual

REACH = 10**6
"""Values that are added for a chance at most: more take seconds and gigabytes."""
COUNTED = 2.0**53
"""Beyond this, floats no longer tell integers apart."""


def is_searched(known: Any) -> bool:
    """Says whether quantiles of what `distribution` returns have to be searched."""
    if isinstance(known, Usual):  # which knows its own, without SciPy's two seconds
        return False
    import scipy.stats

    generic = scipy.stats.rv_discrete
    return isinstance(known, generic) and type(known)._ppf is generic._ppf


def adds_up(known: Any) -> bool:
    """Says whether chances of a law are sums over all values up to one."""
    if isinstance(known, Usual):
        return False
    import scipy.stats

    generic = scipy.stats.rv_discrete
    return isinstance(known, generic) and type(known)._cdf is generic._cdf


def cdf(known: Any, at: Any, *shapes: Any) -> Any:
    """Returns the chances of at most some values.

    Raises:
        ScenarioError: They are sums over more than `REACH` values.
    """
    if adds_up(known):
        low, high = known.support(*shapes)
        far = np.fmin(at, high) - low
        if np.any(far > REACH):
            raise ScenarioError(
                f"law {known.name!r} must be used within {REACH:,} values of its "
                f"least, got {np.max(far):.3g}; {remedy(known)}"
            )
    return known.cdf(at, *shapes)


def check_short(known: Any, *shapes: Any) -> None:
    """Refuses sums over all values of a law that ends beyond reach, such as its mean.

    Raises:
        ValueError: They are too many.
    """
    if not is_searched(known):
        return
    low, high = known.support(*shapes)
    if np.any(np.isfinite(high) & (high - low > REACH)):
        raise ValueError(f"the law {known.name!r} has too many values for its mean")


def remedy(known: Any) -> str:
    """Returns what to do about a law that reaches too far."""
    bounded = "zipfian, which ends at n, or " if known.name == "zipf" else ""
    return f"take {bounded}law: truncated with a lower high"


def ppf(
    known: Any, uniform: Float[np.ndarray, " n"], *shapes: Any
) -> Float[np.ndarray, " n"]:
    """Returns the least values whose chances of at most them reach some numbers.

    Args:
        known: Discrete law of SciPy.
        uniform: Numbers in (0, 1).
        shapes: Parameters of the law, each of one value or of one per number.

    Raises:
        ScenarioError: One is a sum over more than `REACH` values.
    """
    least, most = known.support(*shapes)
    start = np.where(np.isfinite(least), least, 0) + 0 * uniform
    low, high, step = start - 1, start, 1.0
    while (early := (low >= least) & (cdf(known, low, *shapes) >= uniform)).any():
        low, step = np.where(early, low - step, low), 2 * step
    top, step = np.fmin(most, start + (REACH if adds_up(known) else COUNTED)), 1.0
    while (late := cdf(known, high, *shapes) < uniform).any():
        if (late & (high >= top) & (top < most)).any():
            raise ScenarioError(
                f"law {known.name!r} must have draws within {top.max() - start[0]:.3g} "
                f"steps, got one beyond; {remedy(known)}"
            )
        late &= high < top  # the chances of all values may add up to less than 1
        if not late.any():
            break
        low = np.where(late, high, low)
        high, step = np.where(late, np.fmin(high + step, top), high), 2 * step
    while (apart := high - low > 1).any():
        middle = np.floor((low + high) / 2)
        below = cdf(known, middle, *shapes) < uniform
        low = np.where(apart & below, middle, low)
        high = np.where(apart & ~below, middle, high)
    return high
