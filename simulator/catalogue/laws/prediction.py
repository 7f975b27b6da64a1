"""Prediction of the next duration from earlier ones: models and their forecasts.

Each model is fitted to the logarithms of one client's durations, in their order, and
predicts each duration from all before it. Marginal laws are smooth here, whatever
their form, so that models of memory are compared and no families.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import optimize, signal, special, stats

LEVELS = np.arange(1, 20) / 20
"""Levels of the quantiles that are predicted."""
BEYOND = 0.02
"""Share of a wide normal law in every density: nothing is predicted as impossible."""
FARTHEST = 6.0
"""Largest normal score."""
LONGEST = 5_000
"""Last durations that a model is fitted to; of more, those before are left out."""
STEPS = 200
"""Most steps of the algorithm that fits regimes."""
Logs = Float[np.ndarray, " n"]


class Forecast(NamedTuple):
    """Forecasts of each duration, from earlier ones.

    Attributes:
        log_density: Logarithm of the density of its logarithm.
        uniform: Its level in that law: independent and uniform if the law is true.
        quantiles: Quantiles of the law predicted at `LEVELS`, seconds.
    """

    log_density: Float[np.ndarray, " n"]
    uniform: Float[np.ndarray, " n"]
    quantiles: Float[np.ndarray, "n levels"]


class Smooth:
    """A smooth law of logarithms: kernels, as wide as predict left-out ones best.

    Args:
        logs: Logarithms of durations, not all equal.
    """

    def __init__(self, logs: Logs) -> None:
        some = logs[:: -(-logs.size // 500)]
        self._mean, self._sd = float(some.mean()), float(some.std() or logs.std())
        apart = some[:, None] - some
        np.fill_diagonal(apart, np.inf)
        usual = self._sd * some.size**-0.2
        widths = usual * np.array([1, 0.5, 0.25, 0.12, 0.06])
        fits = [
            np.log(np.exp(-((apart / w) ** 2) / 2).mean(axis=1) / w + 1e-12).mean()
            for w in widths
        ]
        width = widths[int(np.argmax(fits))]
        wide = 3 * self._sd
        edge = FARTHEST * wide
        self._at = np.linspace(self._mean - edge, self._mean + edge, 6001)
        near = np.histogram(logs, np.r_[self._at, np.inf])[0] / logs.size
        step = self._at[1] - self._at[0]
        kernel = stats.norm.pdf(np.arange(-3000, 3001) * step, scale=max(width, step))
        density = signal.fftconvolve(near, kernel / kernel.sum(), "same") / step
        far = stats.norm.pdf(self._at, self._mean, wide)
        self._density = (1 - BEYOND) * np.maximum(density, 0) + BEYOND * far
        upto = np.cumsum(self._density)
        self._upto = (upto - self._density / 2) / upto[-1]

    def log_density(self, logs: Logs) -> Float[np.ndarray, " n"]:
        """Returns logarithms of the density."""
        return np.log(np.interp(logs, self._at, self._density))

    def scores(self, logs: Logs) -> Float[np.ndarray, " n"]:
        """Returns normal scores."""
        level = np.interp(logs, self._at, self._upto)
        return np.clip(special.ndtri(level), -FARTHEST, FARTHEST)

    def logs(self, scores: np.ndarray) -> np.ndarray:
        """Returns the logarithms that have some scores."""
        return np.interp(special.ndtr(scores), self._upto, self._at)


class IndependentModel:
    """No memory."""

    def __init__(self, fitted: Logs) -> None:
        self.fitted = fitted

    @cached_property
    def law(self) -> Smooth:
        """The marginal law."""
        return Smooth(self.fitted)

    def predicted(self, logs: Logs) -> Forecast:
        """Predicts each of some durations from those before."""
        return _by_scores(self.law, logs, np.zeros(logs.size), np.ones(logs.size))


class AutoregressiveModel(IndependentModel):
    """Normal scores that are an autoregression, optionally with independent noise."""

    @cached_property
    def options(self) -> tuple[float, float]:
        """Correlation of successive scores, and share of independent noise."""
        z = self.law.scores(self.fitted[-LONGEST:])

        def off(at: np.ndarray) -> float:
            mean, variance = filtered(z, *_unbound(at))
            return float((np.log(variance) + (z - mean) ** 2 / variance).sum())

        best = min(
            (
                optimize.minimize(off, start, method="Nelder-Mead",
                                  options={"xatol": 0.01, "fatol": 0.01})
                for start in ([np.arctanh(_lag_one(z)), -4.0], [2.0, 0.0])
            ),
            key=lambda found: found.fun,
        )  # fmt: skip
        return _unbound(best.x)

    def predicted(self, logs: Logs) -> Forecast:
        return _by_scores(
            self.law, logs, *filtered(self.law.scores(logs), *self.options)
        )


class DriftModel(IndependentModel):
    """Durations that grow or shrink by the same factor from each to the next."""

    @cached_property
    def slope(self) -> float:
        """Growth of the logarithm from one duration to the next."""
        return float(np.polyfit(np.arange(self.fitted.size), self.fitted, 1)[0])

    @cached_property
    def law(self) -> Smooth:
        return Smooth(self.level(self.fitted))

    def level(self, logs: Logs) -> Logs:
        """Returns the logarithms without their growth."""
        return logs - self.slope * np.arange(logs.size)

    def predicted(self, logs: Logs) -> Forecast:
        told = super().predicted(self.level(logs))
        grown = np.exp(self.slope * np.arange(logs.size))[:, None]
        return told._replace(quantiles=told.quantiles * grown)


class RegimeModel(IndependentModel):
    """Two regimes that a Markov chain changes, each with log-normal durations."""

    @cached_property
    def options(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means and deviations of logarithms by regime, and the chain's transitions.

        By expectation and maximisation. Source: Rabiner, A Tutorial on Hidden Markov
        Models (1989), section III.
        """
        y = self.fitted[-LONGEST:]
        least = 1e-3 * y.std()
        slow = y > np.median(y)
        if y.max() - y.min() > 0:  # of two equal halves, or apart where there is a gap
            ordered = np.sort(y)
            low, high = np.cumsum(ordered)[:-1], np.arange(1, y.size)
            between = (low / high - (ordered.sum() - low) / (y.size - high)) ** 2
            at = int(np.argmax(between * high * (y.size - high)))
            slow = y > ordered[at]
        weight = np.stack([~slow, slow], 1) * 0.9 + 0.05
        pairs = weight[:-1].T @ weight[1:]
        before, mean, sd, chain = -np.inf, y[:2], y[:2], pairs
        for _ in range(STEPS):
            count = weight.sum(axis=0)
            mean = (weight * y[:, None]).sum(axis=0) / count
            sd = np.sqrt((weight * (y[:, None] - mean) ** 2).sum(axis=0) / count)
            sd = np.maximum(sd, least)
            chain = (pairs + 0.5) / (pairs + 0.5).sum(axis=1, keepdims=True)
            density = stats.norm.pdf(y[:, None], mean, sd) + 1e-300
            weight, pairs, chance = _smoothed(density, chain)
            if chance - before < 1e-4 * y.size**0.5:
                break
            before = chance
        return mean, sd, chain

    @property
    def rest(self) -> Float[np.ndarray, " 2"]:
        """Shares of the regimes in the long run."""
        _, _, chain = self.options
        return np.array([chain[1, 0], chain[0, 1]]) / (chain[0, 1] + chain[1, 0])

    def predicted(self, logs: Logs, *, forgetful: bool = False) -> Forecast:
        """Predicts each of some durations from those before."""
        mean, sd, chain = self.options
        density = stats.norm.pdf(logs[:, None], mean, sd)
        weight = np.broadcast_to(self.rest, density.shape)
        if not forgetful:
            weight = _foreseen(density + 1e-300, chain, self.rest)
        middle = float(self.rest @ mean)
        wide = 3 * float(np.sqrt(self.rest @ (sd**2 + (mean - middle) ** 2)))
        far = stats.norm.pdf(logs, middle, wide)
        whole = (1 - BEYOND) * (weight * density).sum(axis=1) + BEYOND * far
        at = np.linspace(mean.min() - 5 * sd.max(), mean.max() + 5 * sd.max(), 2001)
        each = special.ndtr((at[:, None] - mean) / sd)
        quantiles = np.stack(
            [np.interp(LEVELS, each @ shares, at) for shares in weight]
        )
        uniform = (weight * special.ndtr((logs[:, None] - mean) / sd)).sum(axis=1)
        return Forecast(np.log(whole), uniform, np.exp(quantiles))


def filtered(
    z: Float[np.ndarray, " n"], correlation: float, noise: float
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Returns mean and variance of each score, given those before: Kalman's filter.

    Args:
        z: Scores of variance 1: an autoregression, and independent noise.
        correlation: Of the autoregression.
        noise: Share of the noise in the variance.
    """
    means, variances, mean, variance = [], [], 0.0, 1 - noise
    drawn = (1 - correlation**2) * (1 - noise)
    for score in z.tolist():
        whole = variance + noise
        means.append(mean)
        variances.append(whole)
        gain = variance / whole
        mean = correlation * (mean + gain * (score - mean))
        variance = correlation**2 * (1 - gain) * variance + drawn
    return np.array(means), np.array(variances)


def _by_scores(
    law: Smooth, logs: Logs, mean: np.ndarray, variance: np.ndarray
) -> Forecast:
    """Returns a forecast of scores that are normal, given those before."""
    z, sd = law.scores(logs), np.sqrt(variance)
    gain = stats.norm.logpdf(z, mean, sd) - stats.norm.logpdf(z)
    at = mean[:, None] + sd[:, None] * special.ndtri(LEVELS)
    uniform = special.ndtr((z - mean) / sd)
    return Forecast(law.log_density(logs) + gain, uniform, np.exp(law.logs(at)))


def _unbound(at: np.ndarray) -> tuple[float, float]:
    return float(0.9999 * np.tanh(at[0])), float(0.98 * special.expit(at[1]))


def _lag_one(z: np.ndarray) -> float:
    centred = z - z.mean()
    found = (centred[1:] * centred[:-1]).sum() / (centred**2).sum()
    return float(np.clip(found, -0.98, 0.98))


def _foreseen(
    density: np.ndarray, chain: np.ndarray, first: np.ndarray
) -> Float[np.ndarray, "n 2"]:
    """Returns the chances of both regimes before each duration, given those before."""
    out, w = [], float(first[0])
    stay, come = float(chain[0, 0]), float(chain[1, 0])
    for zero, one in density.tolist():
        out.append(w)
        a, b = w * zero, (1 - w) * one
        w = (a * stay + b * come) / (a + b)
    found = np.array(out)
    return np.stack([found, 1 - found], 1)


def _smoothed(
    density: np.ndarray, chain: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns chances of regimes and expected transitions given all, and likelihood."""
    rest = np.array([chain[1, 0], chain[0, 1]]) / (chain[0, 1] + chain[1, 0])
    ahead = _foreseen(density, chain, rest)
    joint = ahead * density
    scale = joint.sum(axis=1)
    now = joint / scale[:, None]
    back, b0, b1 = [(1.0, 1.0)], 1.0, 1.0
    (p00, p01), (p10, p11) = chain.tolist()
    for (zero, one), s in zip(
        density[:0:-1].tolist(), scale[:0:-1].tolist(), strict=True
    ):
        c0, c1 = zero * b0 / s, one * b1 / s
        b0, b1 = p00 * c0 + p01 * c1, p10 * c0 + p11 * c1
        back.append((b0, b1))
    behind = np.array(back[::-1])
    weight = now * behind
    after = (density * behind)[1:] / scale[1:, None]
    return weight, (now[:-1].T @ after) * chain, float(np.log(scale).sum())
