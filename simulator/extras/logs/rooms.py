"""Rooms: groups of clients that are slow together, found in their series.

Clients with their own memory seem alike by chance. So the innovations of an
autoregression of each client are compared (prewhitening), interval by interval, and the
chance level comes from the same numbers with one client's shifted in time. Rooms are
taken if, by their correlations in the first half in time, the second is a hundred times
likelier than under independence, and likelier than with one room of all.

Source: Haugh, Checking the Independence of Two Covariance-Stationary Time Series
(JASA 71, 1976).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import signal, stats

from ...catalogue.laws.choosing import Series, SeriesFit, fit_alone
from ...catalogue.laws.fitting import FEWEST, LEVEL, six
from ...catalogue.laws.prediction import Smooth
from .shared import Entry, fit_clients

WIDTHS = (1, 4, 16)
"""Lengths of the intervals that are tried, in usual cycles of a client or rounds."""
LAGS = 10
"""Intervals before that an autoregression predicts from."""


class Room(NamedTuple):
    """Clients that are slow together.

    Attributes:
        clients: Their places, from 0.
        correlation: Correlation of the innovations, mean over pairs.
        p: Largest of its pairs, by shifts in time.
    """

    clients: tuple[int, ...]
    correlation: float
    p: float


RoomFit = tuple[Room, Entry, Float[np.ndarray, " n"]]
"""A room, the slowdown that its clients share, but for the stages, and its factors of
successive intervals, which a law of measured values reads."""


def fit_together(
    every: Sequence[Series],
    measured: Sequence[Entry],
    factors: Sequence[Entry],
    grain: float,
) -> tuple[list[SeriesFit], Entry | None, list[RoomFit]]:
    """Fits one stage of all clients: rooms, or a factor of all, and own laws.

    Args:
        every: The clients' series.
        measured: Each client's law of the values that were measured.
        factors: The same for the factors of each room that may be found.
        grain: Differences up to this are of rounding.

    Returns:
        Each client's own law; a factor of all, if there is one; and those of rooms.
    """
    found, more = find_rooms(every)
    if not found or not more:  # a factor of all, or nothing, predicts as much
        fits, shared = fit_clients(every, measured, grain)
        if shared is not None or not found:
            return fits, shared, []
    left, rooms = list(every), []
    for room in found:
        levels, width = _levels(every, room.clients)
        if levels is None:
            continue
        law = fit_alone(levels, factors[len(rooms)], 0.0).law
        slowdown = {
            "kind": "shared",
            "clients": [client + 1 for client in room.clients],
            "factor": law,
            "every": six(width),
        }
        rooms.append((room, slowdown, levels.seconds))
        for client in room.clients:
            left[client] = _without(every[client], levels, width)
    fits, shared = fit_clients(left, measured, grain)
    return fits, shared, rooms


def find_rooms(every: Sequence[Series]) -> tuple[list[Room], bool]:
    """Returns rooms, and whether they predict more than one room of all does."""
    some = [
        i
        for i, one in enumerate(every)
        if one.seconds.size >= 2 * FEWEST
        and np.ptp(one.seconds) > 0
        and one.seconds.min() > 0
    ]
    if len(some) < 2:
        return [], False
    tried = [_aligned([every[i] for i in some], width) for width in WIDTHS]
    # A client that has one job in all of that time says nothing of rooms.
    tried = [logs for logs in tried if len(logs) >= 2 * FEWEST and _vary(logs)]
    rooms = _rooms([unforeseen(logs, len(logs)) for logs in tried])
    if not rooms:
        return [], False
    halves = []
    for logs in tried:
        half = len(logs) // 2
        if _vary(logs[:half]):
            new = unforeseen(logs, half)
            halves.append((new[:half], new[half:]))
    if not halves:
        return [], False
    first, second = max(halves, key=lambda two: gain(two[0], two[0], rooms).sum())
    told = gain(first, second, rooms)
    # By Markov's inequality, independence is as unlikely as that in 1 % at most.
    if told.sum() <= -np.log(LEVEL):
        return [], False
    whole = gain(first, second, [Room(tuple(range(len(some))), 0.0, 1.0)])
    found = [
        room._replace(clients=tuple(some[i] for i in room.clients)) for room in rooms
    ]
    return found, bool(told.sum() > whole.sum())


def unforeseen(
    logs: Float[np.ndarray, "n clients"], half: int
) -> Float[np.ndarray, "n clients"]:
    """Returns the innovations of each client's autoregression.

    Args:
        logs: Logarithms of durations.
        half: Intervals from the first on that are learnt from.

    Returns:
        Normal scores, with standard deviation 1 on the training part.
    """
    lags = max(1, min(LAGS, half // FEWEST))
    out = np.zeros(logs.shape)
    for i, column in enumerate(logs.T):
        z = Smooth(column[:half]).scores(column)
        z = z - z[:half].mean()
        padded = np.r_[np.zeros(lags), z]
        past = np.stack([padded[lags - k : padded.size - k] for k in range(1, lags + 1)]
                        , axis=1)  # fmt: skip
        weights = np.linalg.lstsq(past[:half], z[:half], rcond=None)[0]
        left = z - past @ weights
        out[:, i] = left / max(float(left[:half].std()), 1e-12)
    return out


def chance(
    one: Float[np.ndarray, " n"], others: Float[np.ndarray, "n others"]
) -> Float[np.ndarray, " others"]:
    """Returns the chance of one's correlation with each other if independent of it.

    It is shifted in time, in a circle, by all steps: the p-value is the share of shifts
    with no less correlation or, if that is less, from a normal law as wide.
    """
    n = len(one)
    waves = np.fft.rfft(others - others.mean(axis=0), axis=0)
    mine = np.fft.rfft(one - one.mean()).conj()
    shifted = np.fft.irfft(waves * mine[:, None], n, axis=0)
    rank = (shifted >= shifted[0] * (1 - 1e-12)).mean(axis=0)
    wide = np.maximum(shifted[1:].std(axis=0), 1e-12)
    return np.minimum(rank, stats.norm.sf(shifted[0] / wide))


def gain(
    learnt: Float[np.ndarray, "n clients"],
    new: Float[np.ndarray, "m clients"],
    rooms: Sequence[Room],
) -> Float[np.ndarray, " m"]:
    """Returns log-likelihoods of intervals by rooms, less those of independence.

    Args:
        learnt: Scores that each room's correlation is learnt from.
        new: Scores whose likelihood is returned: normal ones, alike for all pairs.
        rooms: The rooms.
    """
    out = np.zeros(len(new))
    for room in rooms:
        of, k = list(room.clients), len(room.clients)
        pairs = np.corrcoef(learnt[:, of].T)[np.triu_indices(k, 1)]
        r = float(np.clip(pairs.mean(), 0, 0.99))
        z = new[:, of]
        total, squares = z.sum(axis=1), (z**2).sum(axis=1)
        left = (squares - r * total**2 / (1 + (k - 1) * r)) / (1 - r)
        out -= ((k - 1) * np.log1p(-r) + np.log1p((k - 1) * r) + left - squares) / 2
    return out


def _rooms(tried: Sequence[Float[np.ndarray, "_ clients"]]) -> list[Room]:
    """Joins the two groups that are least alike by chance, as long as that is above it.

    Groups are compared by their sums; they are joined if their likelihood as one room
    is above that as two, too. The level is 1 % over all pairs and widths (Bonferroni).
    """
    if not tried:
        return []
    groups = {i: Room((i,), 1.0, 0.0) for i in range(tried[0].shape[1])}
    sums = [new.copy() for new in tried]
    p = np.stack([[chance(c, new) for c in new.T] for new in sums])
    p[:, *np.diag_indices(len(groups))] = 1.0
    while len(groups) > 1:
        at, i, j = (int(k) for k in np.unravel_index(np.argmin(p), p.shape))
        least = float(p[at, i, j])
        if least > LEVEL / (len(tried) * len(groups) * (len(groups) - 1) / 2):
            break
        new = tried[at]
        clients = tuple(sorted(groups[i].clients + groups[j].clients))
        pairs = np.corrcoef(new[:, clients].T)[np.triu_indices(len(clients), 1)]
        one = Room(clients, float(pairs.mean()), max(least, groups[i].p, groups[j].p))
        two = [each for each in (groups[i], groups[j]) if len(each.clients) > 1]
        if gain(new, new, [one]).sum() <= gain(new, new, two).sum():
            p[:, i, j] = p[:, j, i] = 1.0
            continue
        groups[i] = one
        del groups[j]
        left = [k for k in groups if k != i]
        p[:, j] = p[:, :, j] = p[:, i] = p[:, :, i] = 1.0
        for of, total in zip(p, sums, strict=True):
            total[:, i] += total[:, j]
            of[i, left] = of[left, i] = chance(total[:, i], total[:, left])
    return [room for room in groups.values() if len(room.clients) > 1]


def _aligned(every: Sequence[Series], width: float) -> Float[np.ndarray, "n clients"]:
    """Returns mean logarithms of durations by intervals; where none begin, as before.

    Each client's are without a linear trend: two that drift are not alike by that.
    """
    if all(one.interval is not None for one in every):
        at = [(np.asarray(one.interval) / width).astype(np.int64) for one in every]
    else:
        origin, cycle = _usual(every)
        starts = [(one.start - origin) / (width * cycle) for one in every]
        at = [start.astype(np.int64) for start in starts]
    first, last = max(int(a[0]) for a in at), min(int(a[-1]) for a in at)
    if last - first < 2:
        return np.zeros((0, len(every)))
    return np.stack(
        [
            signal.detrend(
                _filled(np.log(one.seconds), a)[first - a[0] :][: last + 1 - first]
            )
            for one, a in zip(every, at, strict=True)
        ],
        axis=1,
    )


def _usual(every: Sequence[Series]) -> tuple[float, float]:
    cycles = [np.ptp(one.start) / max(one.start.size - 1, 1) for one in every]
    return min(float(one.start[0]) for one in every), float(np.median(cycles))


def _filled(values: np.ndarray, at: Int[np.ndarray, " n"]) -> np.ndarray:
    at = at - at[0]
    number = np.bincount(at)
    means = np.bincount(at, values) / np.maximum(number, 1)
    last = np.maximum.accumulate(np.where(number > 0, np.arange(number.size), 0))
    return means[last]


def _levels(
    every: Sequence[Series], clients: Sequence[int]
) -> tuple[Series | None, float]:
    of = [every[i] for i in clients]
    origin, width = _usual(of)
    at = [((one.start - origin) / width).astype(np.int64) for one in of]
    size = max(int(a[-1]) for a in at) + 1
    logs = np.full((size, len(of)), np.nan)
    for i, (one, a) in enumerate(zip(of, at, strict=True)):
        mine = np.log(one.seconds)
        filled = _filled(mine - mine.mean(), a)
        logs[a[0] : a[0] + filled.size, i] = filled
    logs = logs[~np.isnan(logs).any(axis=1)]
    variances = np.cov(logs.T)
    shared = float(variances[np.triu_indices(len(of), 1)].mean())
    if len(logs) < 2 * FEWEST or shared <= 0:
        return None, width
    mean = logs.mean(axis=1)
    # The mean has some of each client's own, too: its spread is made the factor's.
    factor = mean * (shared / float(mean.var(ddof=1))) ** 0.5
    start = origin + width * (max(int(a[0]) for a in at) + np.arange(len(logs)))
    return Series(start, np.exp(factor)), width


def _without(one: Series, levels: Series, width: float) -> Series:
    logs = np.log(one.seconds)
    at = ((one.start - levels.start[0] + 1e-9 * width) / width).astype(np.int64)
    factor = np.log(levels.seconds)[np.clip(at, 0, levels.seconds.size - 1)]
    left = logs - factor
    own = max(float(logs.var() - factor.var()), float(left.var())) ** 0.5
    # The factor has followed the client itself in part: what is left is too narrow.
    left = left.mean() + (left - left.mean()) * own / max(float(left.std()), 1e-12)
    return one._replace(seconds=np.exp(left))


def _vary(logs: Float[np.ndarray, "n clients"]) -> bool:
    return bool(logs.std(axis=0).min() > 1e-9)
