"""Gaussian differential privacy of a client's releases, in float64.

A release is one message that depends on a client's data, applied or not. Its noise
multiplier z is the noise's standard deviation over the sensitivity of that release.
Levels mu compose by their squares, so every release adds an *increment* of mu squared:

=============  =================================================================
gdp_uniform    2 p^2 (e^(1/z^2) Phi(1.5/z) + 3 Phi(-0.5/z) - 2): fixed-size batches
gdp_poisson    p^2 (e^(1/z^2) - 1): every sample joins with probability p
gdp_linear     p^2 / z^2: the paper's rule, which under-noises
=============  =================================================================

At sampling ratio p = 1 every form is 1 / z^2, the exact composition of Gaussians, which
bounds every ratio. Below 1 the first two are central-limit approximations (they can be
below the exact level), or 1 / z^2 where that is smaller, and the third is the limit of
both for large z.

Source: Dong, Roth and Su, Gaussian Differential Privacy (2019), sections 2, 3 and 5;
VAFL, Theorem 6, with the constants of V-18 and V-19.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
import scipy  # its parts are imported when they are used
from jaxtyping import Float

from ..parts.errors import UserError

Form = Literal["gdp_uniform", "gdp_poisson", "gdp_linear"]
Numbers = int | float | Sequence[int | float] | np.ndarray

_SERIES_BELOW = 0.5
"""Below this 1/z, 3 Phi(-x/2) + Phi(3x/2) - 2 is summed as a series: it cancels."""

_TERMS = range(1, 16)
"""The last term is below 1e-27 of the first at `_SERIES_BELOW`."""

_COEFFICIENTS = np.array(
    [
        (-1) ** n
        * (1.5 ** (2 * n + 1) - 3 * 0.5 ** (2 * n + 1))
        / (math.sqrt(2 * math.pi) * math.factorial(n) * 2**n * (2 * n + 1))
        for n in _TERMS
    ]
)


def increments(
    multipliers: Numbers, sampling_ratio: float, form: Form
) -> Float[np.ndarray, "..."]:
    """Computes the increment of mu squared by each release.

    Args:
        multipliers: z of each release, >= 0; zero (no noise) and anything so small
            that the increment exceeds float64 gives inf; inf gives zero.
        sampling_ratio: Share of a client's samples in a release, in (0, 1].
        form: The accountant's formula.

    Returns:
        Increments >= 0 of the shape of `multipliers`.

    Raises:
        UserError: a multiplier is negative or NaN, or the ratio or form is not valid.

    Source: Dong, Roth and Su (2019), Theorem 3.4 and Corollary 5.4; V-18.
    """
    _check(form, sampling_ratio)
    z = np.asarray(multipliers, dtype=np.float64)
    if not (z >= 0).all():
        wrong = z[~(z >= 0)].flat[0]
        raise UserError(
            f"noise multiplier must be >= 0, got {wrong}; "
            "it is the noise's standard deviation over the sensitivity"
        )
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        x = np.asarray(1 / z)
        if form == "gdp_linear" or sampling_ratio == 1:
            return np.asarray(np.square(sampling_ratio * x))
        unit = _uniform(x) if form == "gdp_uniform" else scipy.special.expm1(x * x)
        return np.asarray(np.minimum(sampling_ratio**2 * unit, np.square(x)))


def noise_multiplier(
    mu: float, releases: int, sampling_ratio: float, form: Form
) -> float:
    """Finds the multiplier z with which `releases` equal releases are mu-GDP.

    Args:
        mu: Target level, > 0 and finite.
        releases: Messages that the level must last for, >= 1.
        sampling_ratio: Share of a client's samples in a release, in (0, 1].
        form: The accountant's formula.

    Returns:
        z > 0: noise standard deviation over sensitivity.

    Raises:
        UserError: an argument is out of its range.

    Source: VAFL, equation 15 with the constants of V-18.
    """
    _check(form, sampling_ratio)
    if not 0 < mu < math.inf:
        raise UserError(f"mu must be > 0 and finite, got {mu}; try 1")
    if releases < 1:
        raise UserError(
            f"releases must be >= 1, got {releases}; "
            "give the number of messages that a client will send"
        )
    ratio = mu / (sampling_ratio * math.sqrt(releases))
    if form == "gdp_linear" or sampling_ratio == 1 or ratio < np.finfo(float).eps / 4:
        return 1 / ratio
    whole = math.sqrt(releases) / mu
    target = 2 * math.log(ratio)
    highest = math.sqrt(np.logaddexp(0, target))
    if form == "gdp_poisson":
        return min(1 / highest, whole)
    # expm1(x^2) <= unit <= 2 expm1(x^2), so Poisson's inverses bracket the root.
    lowest = math.sqrt(np.logaddexp(0, target - math.log(2)))
    x = _root(
        lambda x: _log_uniform(x) - target,
        lowest * (1 - 1e-12),
        highest * (1 + 1e-12),
    )
    return min(1 / x, whole)


def delta_at(mu: float, epsilon: float) -> float:
    """Computes the smallest delta for which mu-GDP gives (epsilon, delta)-DP.

    Args:
        mu: Level, >= 0.
        epsilon: >= 0.

    Source: Dong, Roth and Su (2019), Corollary 2.13.
    """
    if mu == 0:
        return 0.0
    if mu == math.inf:
        return 1.0
    a = mu / 2 - epsilon / mu
    # e^epsilon Phi(-epsilon/mu - mu/2), without the large exponential:
    second = math.exp(-a * a / 2) / 2 * scipy.special.erfcx((mu - a) / math.sqrt(2))
    return max(0.0, float(scipy.special.ndtr(a) - second))


def epsilon(mu: float, delta: float) -> float:
    """Computes the smallest epsilon for which mu-GDP gives (epsilon, delta)-DP.

    Exact: inverts the Gaussian trade-off.

    Args:
        mu: Level, >= 0; inf gives inf.
        delta: Failure probability, in (0, 1).

    Returns:
        epsilon >= 0.

    Raises:
        UserError: `mu` is negative or NaN, or `delta` is not within (0, 1).

    Source: Dong, Roth and Su (2019), Corollary 2.13.
    """
    if not mu >= 0:
        raise UserError(f"mu must be >= 0, got {mu}; it is a privacy level")
    if not 0 < delta < 1:
        raise UserError(f"delta must be in (0, 1), got {delta}; try 1e-5")
    if mu == math.inf:
        return math.inf
    if delta_at(mu, 0.0) <= delta:
        return 0.0
    # Without its second term delta is Phi(mu/2 - epsilon/mu), which is larger.
    highest = mu * (mu / 2 - float(scipy.special.ndtri(delta))) * (1 + 1e-9)
    if highest == math.inf:
        return math.inf
    return _root(lambda value: delta_at(mu, value) - delta, 0.0, highest)


def _check(form: object, sampling_ratio: float) -> None:
    if form not in get_args(Form):
        raise UserError(
            f"accountant must be one of {', '.join(get_args(Form))}, got {form!r}; "
            "gdp_uniform is for batches of a fixed size"
        )
    if not 0 < sampling_ratio <= 1:
        raise UserError(
            f"sampling ratio must be in (0, 1], got {sampling_ratio}; "
            "it is the batch over the client's number of samples"
        )


def _uniform(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    small = np.minimum(x, _SERIES_BELOW)
    series = small**3 * np.polynomial.polynomial.polyval(small**2, _COEFFICIENTS)
    direct = scipy.special.ndtr(1.5 * x) - 3 * scipy.special.ndtr(0.5 * x) + 1
    rest = np.where(x < _SERIES_BELOW, series, direct)
    return np.asarray(
        2 * (scipy.special.expm1(x * x) * scipy.special.ndtr(1.5 * x) + rest)
    )


def _log_uniform(x: float) -> float:
    if x > 10:  # the other terms are below e^-100 of this one
        return x * x + math.log(2) + float(scipy.special.log_ndtr(1.5 * x))
    return math.log(_uniform(np.asarray(x)))


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    eps = np.finfo(np.float64).eps
    from scipy import optimize  # 0.7 s: only where it is needed

    root: Any = optimize.brentq(f, low, high, xtol=float(eps) * high, rtol=4 * eps)
    return float(root)
