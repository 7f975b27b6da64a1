"""A factor that all clients share, found where it predicts more than their memory.

Of several lengths of its intervals the likeliest of the first half in time is taken. It
must predict the second half better than independence and the clients' own memory do.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import optimize, special

from ...catalogue.laws.choosing import (
    APART,
    Halved,
    Series,
    SeriesFit,
    choose,
    fit_each,
    halve,
    is_above_zero,
)
from ...catalogue.laws.fitting import six
from ...catalogue.laws.prediction import Smooth

WIDTHS = (0.5, 1, 2, 4, 8, 16, 32)
"""Lengths of the intervals of a shared factor to try, in typical durations."""
MOST_INTERVALS = 20_000
"""Most intervals that are tried."""
LEAST_SHARED = 0.01
"""Least share of the variance that a shared factor has."""
LEAST_OWN = 0.05
"""Least share of its variance that is left to a client."""


Entry = dict[str, Any]
"""A law, or a slowdown but for its stages, as a scenario has it."""
Seen = tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"], Float[np.ndarray, " m"]]
"""Numbers of scores of all clients by intervals of time, their sums, and the sums of
their squares."""


def fit_clients(
    every: Sequence[Series], measured: Sequence[Entry], grain: float
) -> tuple[list[SeriesFit], Entry | None]:
    """Fits one stage of all clients: own laws, and optionally a common factor.

    The factor is a slowdown; None where they share none.

    Args:
        every: The clients' series.
        measured: Each client's law of the values that were measured.
        grain: Differences up to this are of rounding.
    """
    halved = halve(every, grain)
    choose(halved)
    shared, logs = _shared(every, halved)
    if shared is None:
        return fit_each(every, halved, measured, grain), None
    every = [
        one if mine is None else one._replace(seconds=np.exp(mine))
        for one, mine in zip(every, logs, strict=True)
    ]
    # With the factor, draws that are independent have predicted the most.
    return fit_each(every, halve(every, grain), measured, grain, apart=2), shared


def seen_together(
    z: Float[np.ndarray, " n"], interval: Int[np.ndarray, " n"], size: int
) -> Seen:
    """Sums scores by their intervals, from 0 below `size`."""
    number, total, squares = (
        np.bincount(interval, w, size) for w in (np.ones(z.size), z, z**2)
    )
    return number, total, squares


def common(
    seen: Seen, share: float, correlation: float
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Filters and smooths the factor with a share of the variance of all scores.

    Returns:
        The log-likelihood of each interval's scores given those of intervals before,
        less that of independent ones; and the mean of the factor's score, given all.
    """
    own, root, a, p = 1 - share, share**0.5, 0.0, 1.0
    out = np.empty((5, seen[0].size))
    for j, (n, s, ss) in enumerate(zip(*(c.tolist() for c in seen), strict=True)):
        off, grown = s - n * root * a, 1 + n * share * p / own
        square = ss - 2 * root * a * s + n * share * a * a
        left = square / own - share * p * off**2 / own**2 / grown
        gain = -(n * np.log(own) + np.log(grown) + left - ss) / 2
        after = p / grown
        known = a + after * root / own * off
        out[:, j] = gain, a, p, known, after
        a, p = correlation * known, correlation**2 * after + 1 - correlation**2
    gain, mean, variance, known, after = out
    smooth = known.copy()
    for j in range(smooth.size - 2, -1, -1):
        back = correlation * after[j] / variance[j + 1]
        smooth[j] += back * (smooth[j + 1] - mean[j + 1])
    return gain, smooth


def fit_common(seen: Seen) -> tuple[float, float]:
    """Returns share and correlation of the likeliest factor that all share."""

    def off(at: np.ndarray) -> float:
        share, correlation = special.expit(at)
        return -float(common(seen, min(share, 0.999), correlation)[0].sum())

    found = optimize.minimize(off, [-1.0, 0.0], method="Nelder-Mead",
                              options={"xatol": 0.02, "fatol": 0.01})  # fmt: skip
    share, correlation = special.expit(found.x)
    return min(float(share), 0.999), float(correlation)


Grid = tuple[float, list[Int[np.ndarray, " n"]]]
"""Length of the intervals in each of which a shared factor is the same, seconds; and
the number of the interval of each duration, of each client."""


def _shared(
    every: Sequence[Series], halved: Sequence[Halved | None]
) -> tuple[Entry | None, list[np.ndarray | None]]:
    """Returns a factor that all share if it predicts more, and logarithms without."""
    some = [i for i, one in enumerate(halved) if one is not None]
    nothing: list[np.ndarray | None] = [None] * len(every)
    if len(some) < 2:
        return None, nothing
    mine = [one for one in halved if one is not None]
    late = np.concatenate([np.arange(one.logs.size) >= one.half for one in mine])
    scores = np.concatenate(
        [Smooth(one.logs[: one.half]).scores(one.logs) for one in mine]
    )
    tried = []
    for width, intervals in _grids([every[i] for i in some]):
        at = np.concatenate(intervals)
        seen = seen_together(scores[~late], at[~late], int(at.max()) + 1)
        options = fit_common(seen)
        tried.append(
            (float(common(seen, *options)[0].sum()), width, intervals, options)
        )
    if not tried:
        return None, nothing
    _, width, intervals, options = max(tried, key=lambda one: one[0])
    if not _predicts(mine, late, scores, np.concatenate(intervals), options):
        return None, nothing
    return _without(mine, some, nothing, (width, intervals))


def _grids(every: Sequence[Series]) -> Iterator[Grid]:
    """Yields the intervals that are tried: rounds, or several lengths."""
    origin = min(one.start[0] for one in every)
    length = max(one.start[-1] for one in every) - origin
    rounds = [one.interval for one in every if one.interval is not None]
    if len(rounds) == len(every):
        numbers = [each.astype(np.int64) for each in rounds]
        yield length / max(1, max(each.max() for each in numbers)), numbers
        return
    usual = float(np.median(np.concatenate([one.seconds for one in every])))
    for width in (w * usual for w in WIDTHS):
        if length / width <= MOST_INTERVALS:
            numbers = [((o.start - origin) / width).astype(np.int64) for o in every]
            yield width, numbers


def _predicts(
    mine: Sequence[Halved],
    late: Bool[np.ndarray, " N"],
    scores: Float[np.ndarray, " N"],
    at: Int[np.ndarray, " N"],
    options: tuple[float, float],
) -> bool:
    """Says whether a shared factor predicts more than the clients' own memory."""
    size = int(at.max()) + 1
    factor, _ = common(seen_together(scores, at, size), *options)
    own = np.concatenate([one.gain(one.best) for one in mine])
    new = np.bincount(at[late], minlength=size) > 0
    new &= np.bincount(at[~late], minlength=size) == 0
    more = (factor - np.bincount(at[late], own, size))[new]
    shares = options[0] >= LEAST_SHARED
    return shares and is_above_zero(more) and is_above_zero(factor[new])


def _without(
    mine: list[Halved],
    some: list[int],
    logs: list[np.ndarray | None],
    grid: Grid,
) -> tuple[Entry | None, list[np.ndarray | None]]:
    """Fits the factor to all, and takes it out of each client's logarithms.

    None where of all durations it has no share.
    """
    z = [Smooth(one.logs).scores(one.logs) for one in mine]
    width, intervals = grid
    at = np.concatenate(intervals)
    seen = seen_together(np.concatenate(z), at, int(at.max()) + 1)
    share, correlation = fit_common(seen)
    if share < LEAST_SHARED:  # what half of the log said, the whole does not
        return None, logs
    _, smooth = common(seen, share, correlation)
    spreads = [float(one.logs.std()) for one in mine]
    s = share**0.5 * float(np.median(spreads))
    for i, one, sd, where in zip(some, mine, spreads, intervals, strict=True):
        left = one.logs - s * smooth[where]
        own = max(sd**2 - s**2, LEAST_OWN * sd**2) ** 0.5
        middle = one.logs.mean()
        # What is smooth has less variance than the factor: the rest is too wide, or
        # too narrow where the client itself is much of what is known of the factor.
        logs[i] = middle + (left - left.mean()) * own / max(float(left.std()), 1e-12)
    factor: Entry = {"law": "lognorm", "s": six(s), "scale": 1.0}
    if correlation > APART:
        of, factor = factor, {"law": "autoregressive"}
        factor |= {"of": of, "correlation": six(correlation)}
    return {"kind": "shared", "factor": factor, "every": six(width)}, logs
