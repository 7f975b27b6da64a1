"""Laws of series: of each client's durations in their order, and of what they share.

Memory is chosen by what it predicts: every model of `prediction` is fitted to the
first half in time, and must predict the second better than independence does, by a
test of the gains. Of a log with many clients some gain by chance: all tests of a stage
are corrected together, so that at most `LEVEL` of logs without memory have any, and at
most that share of the memory found is false. The best is fitted to all; then its
marginal law is, by `fitting`, with a test that may refuse it. What is refused leaves
the values that were measured.

Source: Benjamini and Hochberg, Controlling the False Discovery Rate (Journal of the
Royal Statistical Society B 1995).
"""

from collections.abc import Iterator, Sequence
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats

from .fitting import (
    FEWEST,
    LEVEL,
    LawFit,
    fit_law,
    likeliest_quantiles,
    six,
    spread,
    trend,
)
from .markov import of_lognormal_regimes
from .prediction import (
    LEVELS,
    AutoregressiveModel,
    Common,
    DriftModel,
    Forecast,
    IndependentModel,
    RegimeModel,
    Smooth,
    Together,
    common,
    fit_common,
)

MODELS = {
    "autoregressive": AutoregressiveModel,
    "drifting": DriftModel,
    "regimes": RegimeModel,
}
"""Models of memory, by their names."""
WIDTHS = (0.5, 1, 2, 4, 8, 16, 32)
"""Lengths of the intervals of a shared factor that are tried, in usual durations."""
MOST_INTERVALS = 20_000
"""Most intervals that are tried."""
APART = 0.1
"""Correlation from which on values count as independent."""
LEAST_SHARED = 0.01
"""Least share of the variance that a shared factor has."""
LEAST_OWN = 0.05
"""Least share of its variance that is left to a client."""


class Series(NamedTuple):
    """Durations of one stage of a client, in their order.

    Attributes:
        start: When each began, seconds.
        seconds: How long it took.
        interval: Number of the round of each, if there are rounds.
    """

    start: Float[np.ndarray, " n"]
    seconds: Float[np.ndarray, " n"]
    interval: Float[np.ndarray, " n"] | None = None


class SeriesFit(NamedTuple):
    """The law of a series.

    Attributes:
        memory: `independent`, or one of `MODELS`.
        law: The law as a scenario has it.
        values: What a law of measured values reads, of as many durations.
        p: Of the test of fit; NaN without one.
        why: Why a fitted law is refused; empty if it is not.
        gains: Held-out log-likelihood of each model less that of independence, a job.
        errors: Held-out continuous ranked probability score, seconds, of a constant
            mean, resampling, an independent fit and what was chosen.
        scores: Normal scores of the second half in what was predicted of it.
        series: Normal scores of all durations, in their order.
    """

    memory: str
    law: dict[str, Any]
    values: Float[np.ndarray, " n"]
    p: float
    why: str
    gains: dict[str, float]
    errors: dict[str, float]
    scores: Float[np.ndarray, " m"]
    series: Float[np.ndarray, " n"]


class SharedFit(NamedTuple):
    """A factor that all clients share.

    Attributes:
        slowdown: As a scenario has it, but for the stages.
        gain: Held-out log-likelihood of a job, less that of the clients' own memory.
        share: Of the variance of logarithms that it has.
    """

    slowdown: dict[str, Any]
    gain: float
    share: float


class _Halved(NamedTuple):
    """A series whose first half has been learnt from.

    Attributes:
        logs: Logarithms of its durations.
        half: Number of those that were learnt from.
        forecasts: Of each model, of all durations.
        chances: P-values of what each of `MODELS` predicts more than independence.
        good: Models that predict more than independence, the best first.
    """

    logs: Float[np.ndarray, " n"]
    half: int
    forecasts: dict[str, Forecast]
    chances: list[float]
    good: list[str]

    def gain(self, model: str) -> Float[np.ndarray, " m"]:
        """Returns what a model predicted better of the second half, job by job."""
        its, blind = (self.forecasts[name] for name in (model, "independent"))
        return (its.log_density - blind.log_density)[self.half :]

    @property
    def best(self) -> str:
        """Name of the model that is chosen."""
        return self.good[0] if self.good else "independent"


def fit_clients(
    every: Sequence[Series], measured: Sequence[dict[str, Any]], grain: float
) -> tuple[list[SeriesFit], SharedFit | None]:
    """Fits one stage of all clients: own laws, and perhaps a factor that they share.

    Args:
        every: The clients' series.
        measured: Each client's law of the values that were measured.
        grain: Differences up to this are of rounding.
    """
    ends = [one.start[-1] for one in every if one.start.size]
    begins = [one.start[0] for one in every if one.start.size]
    middle = (max(ends) + min(begins)) / 2 if ends else 0.0
    halved = _chosen([_halved(one, middle, grain) for one in every])
    shared, logs = _shared(every, halved)
    if shared is not None:
        every = [
            one if mine is None else one._replace(seconds=np.exp(mine))
            for one, mine in zip(every, logs, strict=True)
        ]
        # With the factor, draws that are independent have predicted the most.
        halved = [_halved(one, middle, grain) for one in every]
    apart = 1 if shared is None else 2
    fits = [
        _fit(one.seconds, mine, own, grain, apart, len(every))
        for one, mine, own in zip(every, halved, measured, strict=True)
    ]
    return fits, shared


def _halved(one: Series, middle: float, grain: float) -> _Halved | None:
    """Learns from the first half in time; None where nothing can be learnt."""
    seconds = one.seconds
    if seconds.size < 2 * FEWEST or np.ptp(seconds) <= grain or seconds.min() <= 0:
        return None
    half = int(np.searchsorted(one.start, middle))
    logs = np.log(spread(seconds, np.random.default_rng(0)))
    first = logs[:half]
    if min(half, seconds.size - half) < FEWEST or first.std() < 1e-9:
        return None
    models = {name: model(first) for name, model in MODELS.items()}
    forecasts = {
        "independent": IndependentModel(first).predicted(logs),
        **{name: model.predicted(logs) for name, model in models.items()},
    }
    found = _Halved(logs, half, forecasts, [], [])
    regimes = models["regimes"]
    assert isinstance(regimes, RegimeModel)
    chances = {name: _chance(found.gain(name)) for name in MODELS}
    # Two of them may predict more by their marginal law alone, which is no memory.
    alone = regimes.predicted(logs, forgetful=True).log_density
    kept = (forecasts["regimes"].log_density - alone)[half:]
    chances["regimes"] = max(chances["regimes"], _chance(kept))
    chances["drifting"] = max(chances["drifting"], trend(logs)[1])
    return found._replace(chances=[*chances.values()])


def _chosen(halved: Sequence[_Halved | None]) -> list[_Halved | None]:
    """Returns series with the models that are good, by all tests of all of them."""
    chances = [p for one in halved if one is not None for p in one.chances]
    if not chances:
        return [*halved]
    shares = iter(stats.false_discovery_control(chances).tolist())
    found: list[_Halved | None] = []
    for one in halved:
        if one is not None:
            good = [name for name in MODELS if next(shares) < LEVEL]
            good.sort(key=lambda name, one=one: -one.gain(name).mean())
            one = one._replace(good=good)
        found.append(one)
    return found


def _fit(
    seconds: np.ndarray,
    halved: _Halved | None,
    measured: dict[str, Any],
    grain: float,
    apart: int,
    among: int,
) -> SeriesFit:
    """Fits the best model to all of a series, and a marginal law to that."""
    memory, wrapped, values = "independent", dict, seconds
    own: LawFit | None = None
    for memory in halved.good if halved else ():
        assert halved is not None
        model = MODELS[memory](halved.logs)
        if isinstance(model, RegimeModel):
            own = _of_regimes(model, halved.logs)
            if own.accepted:
                break
            own = None
        elif isinstance(model, DriftModel):
            values = np.exp(model.level(halved.logs))
            factor = six(np.exp(model.slope * seconds.size))
            wrapped = _wrapping(memory, factor=factor, over=seconds.size)
            break
        else:
            correlation, noise = model.options
            noise = noise if noise > 0.01 else 0.0
            wrapped = _wrapping(memory, correlation=six(correlation),
                                **({"noise": six(noise)} if noise else {}))  # fmt: skip
            start = (1 - noise) * abs(correlation)
            far = log(APART / (1 - noise)) / log(max(abs(correlation), 1e-9))
            apart = max(2, ceil(far)) if start > APART else 2
            break
    else:
        memory = "independent"
    if own is None:
        own = fit_law(values, grain=grain, apart=apart, among=among)
    law = own.law if own.accepted and own.law is not None else measured
    if "drift" in own.why:
        law = {**law, "order": "replay"}  # in their order they drift as they did
    return SeriesFit(
        memory,
        wrapped(law),
        values,
        own.p,
        own.why,
        *_held_out(halved, seconds, memory),
    )


def _wrapping(memory: str, **options: float) -> Any:
    return lambda law: {"law": memory, "of": law, **options}


def _of_regimes(model: RegimeModel, logs: np.ndarray) -> LawFit:
    """Returns the law of two regimes; its test is of what it predicts."""
    mean, sd, chain = model.options
    leaves = np.array([six(chain[0, 1]), six(chain[1, 0])])
    transition = np.array([[1 - leaves[0], leaves[0]], [leaves[1], 1 - leaves[1]]])
    law = of_lognormal_regimes(mean, sd, transition)
    found: Any = stats.kstest(model.predicted(logs).uniform, "uniform")
    p = float(found.pvalue)
    why = "" if p >= LEVEL else f"Kolmogorov-Smirnov: p = {p:.3g} < {LEVEL:g}"
    return LawFit(law, p, logs.size, why)


def _held_out(
    halved: _Halved | None, seconds: np.ndarray, memory: str
) -> tuple[dict[str, float], dict[str, float], np.ndarray, np.ndarray]:
    """Returns gains, errors, scores of what was predicted, and of the series."""
    if halved is None:
        return {}, {}, np.zeros(0), np.zeros(0)
    before, after = seconds[: halved.half], seconds[halved.half :]
    chosen = halved.forecasts[memory]
    errors = {
        name: _error(np.broadcast_to(quantiles, (after.size, LEVELS.size)), after)
        for name, quantiles in {
            "constant mean": np.full(LEVELS.size, before.mean()),
            "resampling": np.quantile(before, LEVELS),
            "independent fit": likeliest_quantiles(before, LEVELS),
            "chosen": chosen.quantiles[halved.half :],
        }.items()
    }
    gains = {name: float(halved.gain(name).mean()) for name in MODELS}
    uniform = np.clip(chosen.uniform[halved.half :], 1e-6, 1 - 1e-6)
    whole = Smooth(halved.logs).scores(halved.logs)
    return gains, errors, stats.norm.ppf(uniform), whole


class _Grid(NamedTuple):
    """Intervals in each of which a shared factor is the same.

    Attributes:
        width: Their length, seconds.
        intervals: Number of the interval of each duration, of each client.
    """

    width: float
    intervals: list[Int[np.ndarray, " n"]]

    @property
    def joined(self) -> Int[np.ndarray, " N"]:
        """Number of the interval of each duration, client after client."""
        return np.concatenate(self.intervals)


def _shared(
    every: Sequence[Series], halved: Sequence[_Halved | None]
) -> tuple[SharedFit | None, list[np.ndarray | None]]:
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
    best: tuple[float, Any] = (-np.inf, None)
    for grid in _grids([every[i] for i in some]):
        at = grid.joined
        seen = Together.of(scores[~late], at[~late], int(at.max()) + 1)
        options = fit_common(seen)
        learnt = float(common(seen, *options).gain.sum())
        best = max(best, (learnt, (grid, options)), key=lambda one: one[0])
    if best[1] is None:
        return None, nothing
    grid, options = best[1]
    gain = _gain_of_shared(mine, late, scores, grid.joined, options)
    if gain is None:
        return None, nothing
    return _without(mine, some, nothing, grid, gain)


def _grids(every: Sequence[Series]) -> Iterator[_Grid]:
    """Yields the intervals that are tried: rounds, or several lengths."""
    origin = min(one.start[0] for one in every)
    length = max(one.start[-1] for one in every) - origin
    rounds = [one.interval for one in every if one.interval is not None]
    if len(rounds) == len(every):
        numbers = [each.astype(np.int64) for each in rounds]
        yield _Grid(length / max(1, max(each.max() for each in numbers)), numbers)
        return
    usual = float(np.median(np.concatenate([one.seconds for one in every])))
    for width in (w * usual for w in WIDTHS):
        if length / width <= MOST_INTERVALS:
            numbers = [((o.start - origin) / width).astype(np.int64) for o in every]
            yield _Grid(width, numbers)


def _gain_of_shared(
    mine: Sequence[_Halved],
    late: Bool[np.ndarray, " N"],
    scores: Float[np.ndarray, " N"],
    at: Int[np.ndarray, " N"],
    options: tuple[float, float],
) -> float | None:
    """Returns what a shared factor predicted better, a job; None if it does not.

    Args:
        mine: Series of the clients.
        late: Which durations are of the second half, of all clients.
        scores: Normal scores of the durations.
        at: Intervals of the durations.
        options: Share and correlation of the factor, learnt from the first half.
    """
    size = int(at.max()) + 1
    factor = common(Together.of(scores, at, size), *options).gain
    own = np.concatenate([one.gain(one.best) for one in mine])
    new = np.bincount(at[late], minlength=size) > 0
    new &= np.bincount(at[~late], minlength=size) == 0
    more = (factor - np.bincount(at[late], own, size))[new]
    shares = options[0] >= LEAST_SHARED
    if shares and _is_above_zero(more) and _is_above_zero(factor[new]):
        return float(more.sum() / late.sum())
    return None


def _without(
    mine: list[_Halved],
    some: list[int],
    logs: list[np.ndarray | None],
    grid: _Grid,
    gain: float,
) -> tuple[SharedFit | None, list[np.ndarray | None]]:
    """Fits the factor to all, and takes it out of each client's logarithms.

    None where of all durations it has no share.
    """
    z = [Smooth(one.logs).scores(one.logs) for one in mine]
    at = grid.joined
    seen = Together.of(np.concatenate(z), at, int(at.max()) + 1)
    share, correlation = fit_common(seen)
    if share < LEAST_SHARED:  # what half of the log said, the whole does not
        return None, logs
    found: Common = common(seen, share, correlation)
    spreads = [float(one.logs.std()) for one in mine]
    s = share**0.5 * float(np.median(spreads))
    for i, one, sd, where in zip(some, mine, spreads, grid.intervals, strict=True):
        left = one.logs - s * found.smooth[where]
        own = max(sd**2 - s**2, LEAST_OWN * sd**2) ** 0.5
        middle = one.logs.mean()
        # What is smooth has less variance than the factor: the rest is too wide, or
        # too narrow where the client itself is much of what is known of the factor.
        logs[i] = middle + (left - left.mean()) * own / max(float(left.std()), 1e-12)
    factor: dict[str, Any] = {"law": "lognorm", "s": six(s), "scale": 1.0}
    if correlation > APART:
        of, factor = factor, {"law": "autoregressive"}
        factor |= {"of": of, "correlation": six(correlation)}
    slowdown = {"kind": "shared", "factor": factor, "every": six(grid.width)}
    return SharedFit(slowdown, gain, share), logs


def _is_above_zero(gains: np.ndarray) -> bool:
    """Whether gains are above 0 on average."""
    return _chance(gains) < LEVEL


def _chance(gains: np.ndarray) -> float:
    """Returns the p-value of gains that are 0 or less on average, by Student's test."""
    if gains.size < FEWEST or np.ptp(gains) == 0:
        return 1.0
    found: Any = stats.ttest_1samp(gains, 0, alternative="greater")
    return float(found.pvalue)


def _error(quantiles: np.ndarray, values: np.ndarray) -> float:
    """Returns the continuous ranked probability score, by quantiles.

    Source: Gneiting and Raftery, Strictly Proper Scoring Rules (2007), section 4.2.
    """
    off = values[:, None] - quantiles
    return float(2 * np.maximum(LEVELS * off, (LEVELS - 1) * off).mean())
