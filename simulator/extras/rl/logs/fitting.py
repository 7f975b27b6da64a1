"""Fits a world of samples to a log: laws of lengths and steps, times of tokens."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ....catalogue.laws.choosing import Series, fit_alone
from ....catalogue.laws.fitting import (
    LEVEL,
    MOST,
    LawFit,
    fit_in_groups,
    fit_law,
    shares_factor,
    shortest,
)
from ..world.record import SampleOutcome
from .reading import GRID, SampleLog
from .record import ends, levels

BINS = 12
"""Largest number of busy slots for which seconds per token are reported."""
FINE = 64
"""Most numbers of busy slots that times are divided by."""
EXACT = 1e-12
"""Mean square of relative residuals up to which a time per token is exact."""
CUT = 5
"""Samples of exactly the greatest length from which on that is where they are cut."""
Entry = dict[str, Any]
"""A law as a scenario has it."""
UNDER = "a marginal law for "
"""Before a memory whose marginal law is refused."""


class Fitted(NamedTuple):
    """One part of a world, and its fit to the log.

    Attributes:
        key: Dotted key of a scenario.
        value: Its entry; None where the log's own values are taken.
        says: The law, as text.
        values: Numbers that it comes from.
        p: Of the test of fit; NaN without one.
        why: Why a law is refused; empty if it is not.
    """

    key: str
    value: float | str | Entry | dict[int, float] | None
    says: str
    values: int
    p: float = np.nan
    why: str = ""


def fit_lengths(
    log: SampleLog,
    every: Float[np.ndarray, "groups size"],
    whole: Int[np.ndarray, " w"],
    measured: Entry,
) -> tuple[list[Fitted], str]:
    """Fits laws to lengths: of samples alone, or with a factor that a prompt has.

    Memory, from sample to sample or from prompt to prompt, is looked for in the groups
    before the first that is not whole, of which none is left out for being long.

    Returns:
        Fits, and a line on differences of the fitted world.
    """
    table = every[whole]
    first = table[: int((whole == np.arange(whole.size)).sum())]
    known = np.isfinite(log.tokens) & (log.tokens > 0)
    ended = known & np.isfinite(log.finish) & (log.outcome != SampleOutcome.ABORTED)
    longest = float(log.tokens[ended].max())
    at_most = ended & (log.tokens == longest)
    cut = bool(at_most.sum() >= CUT and np.ptp(log.tokens[ended]))
    most = []
    if cut:
        words = f"{longest:g}"
        most = [Fitted("generation.most_tokens", longest, words, int(at_most.sum()))]
    if shares_factor(table):
        prompts = _remembered("", np.exp(np.log(first).mean(axis=1)), measured)
        what = "mean lengths of successive prompts"
        remark = "" if prompts is None else _forgets(what, prompts)
        inner, shared = fit_in_groups(table)
        if cut:
            why = "lengths are alike in groups and cut off, which no law here is"
            inner, shared = (fit._replace(law=None, why=why) for fit in (inner, shared))
        fits = [_told("generation.tokens", inner)]
        return [*fits, _told("generation.difficulty", shared), *most], remark
    remembered = _remembered("generation.tokens", first.ravel(), measured)
    if remembered is not None and not cut:
        return [remembered], ""
    what = "lengths, which are cut off,"
    remark = "" if remembered is None else _forgets(what, remembered)
    # What has not ended, or was stopped, is known to be longer.
    tokens = log.tokens.copy()
    pace = np.median((log.finish - log.start)[ended] / tokens[ended])
    open_ = np.isnan(tokens)
    tokens[open_] = (ends(log) - log.start)[open_] / pace
    some = tokens > 0
    censored = ~ended | (at_most & cut)
    alone = _told("generation.tokens", fit_law(tokens[some], censored[some]))
    return [alone, *most], remark


def fit_steps(
    log: SampleLog, tokens: Float[np.ndarray, " steps"], measured: Entry
) -> list[Fitted]:
    """Fits the seconds of a step: a time per token, if there is one, and a law.

    Args:
        log: The log.
        tokens: Number in the batch of each step.
        measured: Law of the seconds that are not of tokens, as they were measured.
    """
    from scipy import stats

    seconds = log.step_end - log.step_start
    name = "trainer.step"
    if np.ptp(tokens) and np.ptp(seconds) > 2 * GRID and seconds.size > 2:
        line = np.asarray(stats.linregress(tokens, seconds))
        slope, _, _, p, _ = line.tolist()
        rest = seconds - slope * tokens
        if slope > 0 and p < LEVEL and rest.min() >= -2 * GRID:
            each = float(f"{slope:.6g}")
            # Rounding of the slope, and of times.
            grain = 4 * GRID + 1e-6 * slope * float(tokens.max())
            rest = np.where(np.abs(rest) <= grain, 0.0, rest)
            key = "trainer.seconds_per_token"
            per_token = Fitted(key, each, f"{each:g}", seconds.size)
            return [_step(name, rest, measured, grain), per_token]
    return [_step(name, seconds, measured, 2 * GRID)]


def fit_pace(log: SampleLog) -> tuple[Fitted, str]:
    """Fits the seconds of a token, by the busy slots of a machine if they matter.

    A token's duration follows from the number of its machine's busy slots at that time.

    Returns:
        A number, an expression or a table; and by how much single samples differ.
    """
    from scipy import stats

    key = "generation.seconds_per_token"
    ended = np.isfinite(log.finish) & (log.outcome != SampleOutcome.ABORTED)
    some = np.flatnonzero(ended & (log.tokens > 0) & (log.finish > log.start))
    if some.size > MOST:
        rng = np.random.default_rng(0)
        some = np.sort(rng.choice(some, MOST, replace=False))
    tokens, seconds = log.tokens[some], (log.finish - log.start)[some]
    busy, time = _time_at(log, some)
    mean = (time * busy).sum(axis=1) / seconds
    whole = float(seconds.sum() / tokens.sum())
    n = some.size
    even = np.abs(seconds - whole * tokens) <= 2 * GRID + 1e-9 * seconds
    if even.all():
        return Fitted(key, _short(whole), f"{_short(whole):g}", n), ""
    if busy.size > 1 and np.ptp(mean) > 0 and n > 2 * BINS:
        _, p = np.asarray(stats.spearmanr(mean, seconds / tokens)).tolist()
        if p < LEVEL:
            return _by_busy(key, busy, time, tokens)
    spread = float(np.std(seconds / tokens / whole))
    return Fitted(key, _short(whole), f"{_short(whole):g}", n), _remark(spread)


def _by_busy(
    key: str, busy: np.ndarray, time: np.ndarray, tokens: np.ndarray
) -> tuple[Fitted, str]:
    """Returns a line in the busy slots, if a table is not better by an F test."""
    from scipy import optimize, stats

    n = tokens.size

    def off(line: np.ndarray) -> np.ndarray:
        return (time / (line[0] + line[1] * busy)).sum(axis=1) / tokens - 1

    at, rates, left = _table(busy, time, tokens)
    line = None
    if at.size > 1 and busy[0] < busy[-1]:
        guess = np.polyfit(at, 1 / rates, 1)[::-1]
        if (guess[0] + guess[1] * busy > 0).all():
            line = optimize.least_squares(off, guess, x_scale=np.abs(guess)).x
    if line is not None and min(line[0] + line[1] * np.r_[1, busy]) > 0:
        apart = float((off(line) ** 2).sum())
        freedom = max(at.size - 2, 1), n - at.size
        gain = (apart - left) / freedom[0] / max(left / freedom[1], 1e-300)
        if apart / n < EXACT or stats.f.sf(gain, *freedom) >= LEVEL:
            a, b = map(_short, line)
            text = f"{a!r} {'-' if b < 0 else '+'} {abs(b)!r}*m"
            return Fitted(key, text, text, n), _remark((apart / n) ** 0.5)
    table = {int(m): _short(1 / r) for m, r in zip(at, rates, strict=True)}
    says = ", ".join(f"{m}: {value:g}" for m, value in table.items())
    return Fitted(key, table, says, n), _remark((left / n) ** 0.5)


def _table(
    busy: np.ndarray, time: np.ndarray, tokens: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns busy slots, their tokens per second, and the squares that are left."""
    from scipy import optimize

    share = np.cumsum(time.sum(axis=0)) / time.sum()
    place = np.minimum((share * BINS - 1e-9).astype(int), BINS - 1)
    if busy.size <= BINS:
        place = np.arange(busy.size)
    bins = np.unique(place, return_inverse=True)[1]
    grouped = np.zeros((tokens.size, bins.max() + 1))
    np.add.at(grouped.T, bins, time.T)
    weight = time.sum(axis=0)
    at = np.round(np.bincount(bins, weight * busy) / np.bincount(bins, weight))
    rates, left = optimize.nnls(grouped / tokens[:, None], np.ones(tokens.size))
    some = rates > 0
    return at[some], rates[some], float(left**2)


def _time_at(
    log: SampleLog, some: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " levels"], Float[np.ndarray, "n levels"]]:
    """Returns numbers of busy slots of a machine, and how long samples had each.

    Of many numbers, neighbours are taken together.
    """
    until = ends(log)
    machines = range(int(log.machine.max()) + 1)
    steps = []
    for number in machines:
        mine = log.machine == number
        steps.append(levels(log.start[mine], until[mine]))
    lasts = [np.diff(time, append=time[-1:]) for time, _ in steps]
    spent = np.zeros(log.start.size + 1)
    for (_, busy), last in zip(steps, lasts, strict=True):
        spent += np.bincount(busy, last, minlength=spent.size)
    found = np.flatnonzero(spent > 0)
    found = found[found > 0]
    share = np.cumsum(spent[found]) / spent[found].sum()
    place = np.arange(found.size)
    if found.size > FINE:
        place = np.minimum((share * FINE - 1e-9).astype(int), FINE - 1)
        place = np.unique(place, return_inverse=True)[1]
    of_level = np.zeros(log.start.size + 1, np.int64)
    of_level[found] = place
    weight = spent[found]
    busy = np.bincount(place, weight * found) / np.bincount(place, weight)
    time = np.zeros((some.size, busy.size))
    for number, (at, level), last in zip(machines, steps, lasts, strict=True):
        mine = log.machine[some] == number
        rows = some[mine]
        for bin_ in range(busy.size):
            in_bin = last * ((of_level[level] == bin_) & (level > 0))
            upto = np.r_[0.0, np.cumsum(in_bin)]
            low, high = (np.searchsorted(at, t[rows]) for t in (log.start, until))
            time[mine, bin_] = upto[high] - upto[low]
    return busy, time


def _remark(spread: float) -> str:
    if spread < EXACT**0.5:
        return ""
    return (
        f"the time per token of single samples differs by {spread:.1%} (standard "
        f"deviation) from the fitted one; the fitted world has none of that"
    )


def _step(key: str, seconds: np.ndarray, measured: Entry, grain: float) -> Fitted:
    found = _remembered(key, seconds, measured, grain)
    return found or _told(key, fit_law(seconds, grain=grain))


def _remembered(
    key: str, values: np.ndarray, measured: Entry, grain: float = 0.0
) -> Fitted | None:
    """Fits a law with memory to successive values; None if they have none."""
    values = values[:MOST]
    series = Series(np.arange(float(values.size)), values)
    fit = fit_alone(series, measured, grain)
    if fit.memory == "independent":
        return None
    found = Fitted(key, fit.law, _words(fit.law), values.size, fit.p, fit.why)
    if not fit.why:
        return found
    says = _words({name: entry for name, entry in fit.law.items() if name != "of"})
    found = found._replace(says=f"{UNDER}{says}")
    if fit.memory == "drifting":  # what is without drift is no column of the log
        return found._replace(value=None, why=f"they drift; {fit.why}")
    return found


def _forgets(what: str, found: Fitted) -> str:
    return (
        f"{what} have memory ({found.says.removeprefix(UNDER)}); the fitted world has "
        f"none of that"
    )


def _told(key: str, fit: LawFit) -> Fitted:
    says = "none" if fit.law is None else _words(fit.law)
    value = fit.law if fit.accepted else None
    return Fitted(key, value, says, fit.values, fit.p, fit.why)


def _words(law: Entry) -> str:
    """Returns a law in words, with its numbers to four digits."""
    said = []
    for name, value in law.items():
        match value:
            case float() | int():
                said.append(f"{name} {value:.4g}")
            case dict():
                said.append(f"{name} {_words(value)}")
            case [dict(), *_]:
                said.append(f"{name} {' and '.join(map(_words, value))}")
    return f"{law['law']} ({', '.join(said)})"


def _short(value: float) -> float:
    """Returns a number to the digits that rounded times leave."""
    return shortest(float(value), 1e-8 * abs(float(value)))
