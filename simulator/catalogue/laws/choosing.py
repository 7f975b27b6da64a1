"""Laws of series: of durations in their order, with their memory.

Memory is chosen by its predictions: every model of `prediction` is fitted to the first
half in time (of the log, or of a series that begins late or ends early), and must
predict the second better than independence does, by a test of the gains. In a log with
many clients some gain by chance. All tests of a stage are therefore corrected together:
at most `LEVEL` of logs without memory show any, and at most that share of the memory
found is false. The best is fitted to all; then its marginal law is, by `fitting`, with
a test that may reject it. After a rejection the measured values remain.

Source: Benjamini and Hochberg, Controlling the False Discovery Rate (Journal of the
Royal Statistical Society B 1995).
"""

from collections.abc import Callable, Sequence
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
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
    DriftModel,
    Forecast,
    IndependentModel,
    RegimeModel,
    Smooth,
)

MODELS = {
    "autoregressive": AutoregressiveModel,
    "drifting": DriftModel,
    "regimes": RegimeModel,
}
"""Models of memory, by their names."""
APART = 0.1
"""Correlation from which on values count as independent."""


class Series(NamedTuple):
    """Durations of one stage of a client, in order.

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
        values: As many durations, for a law of measured values.
        p: Of the test of fit; NaN without one.
        why: Why a fitted law is refused; empty if it is not.
        gains: Held-out log-likelihood of each model less that of independence, per job.
        errors: Held-out continuous ranked probability score, seconds, of a constant
            mean, resampling, an independent fit and the chosen model.
        scores: Normal scores of the second half in their predicted laws.
        series: Normal scores of all durations, in their order.
    """

    memory: str
    law: dict[str, object]
    values: Float[np.ndarray, " n"]
    p: float
    why: str
    gains: dict[str, float]
    errors: dict[str, float]
    scores: Float[np.ndarray, " m"]
    series: Float[np.ndarray, " n"]


class Halved:
    """A series whose first half has been learnt from.

    Args:
        logs: Logarithms of its durations.
        half: Number of durations for fitting.

    Attributes:
        forecasts: Of each model, of all durations.
        chances: P-values of each of `MODELS` against independence.
        good: Models that predict more than independence, the best first; once chosen.
    """

    def __init__(self, logs: Float[np.ndarray, " n"], half: int) -> None:
        self.logs, self.half, first = logs, half, logs[:half]
        self.good: list[str] = []
        regimes = RegimeModel(first)
        self.forecasts: dict[str, Forecast] = {
            "independent": IndependentModel(first).predicted(logs),
            "autoregressive": AutoregressiveModel(first).predicted(logs),
            "drifting": DriftModel(first).predicted(logs),
            "regimes": regimes.predicted(logs),
        }
        chances = {name: _chance(self.gain(name)) for name in MODELS}
        # Two of them may predict more by their marginal law alone, which is no memory.
        alone = regimes.predicted(logs, forgetful=True).log_density
        kept = (self.forecasts["regimes"].log_density - alone)[half:]
        chances["regimes"] = max(chances["regimes"], _chance(kept))
        chances["drifting"] = max(chances["drifting"], trend(logs)[1])
        self.chances = [*chances.values()]

    def gain(self, model: str) -> Float[np.ndarray, " m"]:
        """Returns a model's gain in predicting the second half, per job."""
        its, blind = (self.forecasts[name] for name in (model, "independent"))
        return (its.log_density - blind.log_density)[self.half :]

    @property
    def best(self) -> str:
        """Name of the model that is chosen."""
        return self.good[0] if self.good else "independent"


def fit_alone(one: Series, measured: dict[str, object], grain: float) -> SeriesFit:
    """Fits a series that is the only one of its stage.

    Args:
        one: The series.
        measured: Law of the values that were measured.
        grain: Differences up to this are of rounding.
    """
    halved = halve([one], grain)
    choose(halved)
    (fit,) = fit_each([one], halved, [measured], grain)
    return fit


def halve(every: Sequence[Series], grain: float) -> list[Halved | None]:
    """Fits the models to the first half in time of each series of a stage.

    A series with few durations in a half of all time is halved by itself.

    Returns:
        The fits; None where nothing can be fitted.
    """
    ends = [one.start[-1] for one in every if one.start.size]
    begins = [one.start[0] for one in every if one.start.size]
    middle = (max(ends) + min(begins)) / 2 if ends else 0.0
    return [_halved(one, middle, grain) for one in every]


def _halved(one: Series, middle: float, grain: float) -> Halved | None:
    seconds = one.seconds
    if seconds.size < 2 * FEWEST or np.ptp(seconds) <= grain or seconds.min() <= 0:
        return None
    half = int(np.searchsorted(one.start, middle))
    if min(half, seconds.size - half) < FEWEST:
        half = seconds.size // 2
    logs = np.log(spread(seconds, np.random.default_rng(0)))
    if logs[:half].std() < 1e-9:
        return None
    return Halved(logs, half)


def choose(halved: Sequence[Halved | None]) -> None:
    """Sets which models of each series are good, by all tests of all of them."""
    known = [one for one in halved if one is not None]
    chances = [p for one in known for p in one.chances]
    shares = iter(stats.false_discovery_control(chances).tolist() if chances else ())
    for one in known:
        one.good = [name for name in MODELS if next(shares) < LEVEL]
        one.good.sort(key=lambda name, one=one: -one.gain(name).mean())


def fit_each(
    every: Sequence[Series],
    halved: Sequence[Halved | None],
    measured: Sequence[dict[str, object]],
    grain: float,
    apart: int = 1,
) -> list[SeriesFit]:
    """Fits each series of a stage.

    Args:
        every: The series.
        halved: The fits to their first halves.
        measured: Each one's law of the values that were measured.
        grain: Differences up to this are of rounding.
        apart: Number of values from each to the next that does not depend on it.
    """
    return [
        _fit(one.seconds, mine, own, grain, apart, len(every))
        for one, mine, own in zip(every, halved, measured, strict=True)
    ]


def _fit(
    seconds: np.ndarray,
    halved: Halved | None,
    measured: dict[str, object],
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


def _wrapping(
    memory: str, **options: float
) -> Callable[[dict[str, object]], dict[str, object]]:
    return lambda law: {"law": memory, "of": law, **options}


def _of_regimes(model: RegimeModel, logs: np.ndarray) -> LawFit:
    mean, sd, chain = model.options
    leaves = np.array([six(chain[0, 1]), six(chain[1, 0])])
    transition = np.array([[1 - leaves[0], leaves[0]], [leaves[1], 1 - leaves[1]]])
    law = of_lognormal_regimes(mean, sd, transition)
    found: Any = stats.kstest(model.predicted(logs).uniform, "uniform")
    p = float(found.pvalue)
    why = "" if p >= LEVEL else f"Kolmogorov-Smirnov: p = {p:.3g} < {LEVEL:g}"
    return LawFit(law, p, logs.size, why)


def _held_out(
    halved: Halved | None, seconds: np.ndarray, memory: str
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


def is_above_zero(gains: np.ndarray) -> bool:
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
