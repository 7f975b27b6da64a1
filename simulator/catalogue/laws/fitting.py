"""Laws of measured values, each with a test of fit that may refuse it.

Of `expon`, `gamma`, `lognorm` and `weibull_min` the likeliest is taken, by Akaike's
criterion. Its Anderson-Darling test is calibrated by resamples that are fitted as the
values are, because standard levels hold for known parameters alone. Before it, a test
of ranks rejects values with a drift.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, SupportsFloat

import numpy as np
from jaxtyping import Bool, Float, Int

LEVEL = 0.01
"""Least p of a law that is kept, in each of the tests."""
FEWEST = 20
"""Values from which on a law is fitted."""
MOST = 20_000
"""Values that parameters are estimated from; of more, as many at random."""
TESTED = 2_000
"""Values that are tested; of more, as many at random."""
RESAMPLES = 199


class LawFit(NamedTuple):
    """A law of measured values, or why there is none.

    Attributes:
        law: The law as a scenario has it; None if none is fitted.
        p: Of the test of fit; NaN without one.
        values: Number of measured values.
        why: Why the law is refused; empty if it is not.
    """

    law: dict[str, object] | None
    p: float
    values: int
    why: str

    @property
    def accepted(self) -> bool:
        """Whether the law is accepted for the values."""
        return not self.why


class _Family(NamedTuple):
    """A family as SciPy has it, perhaps that of the logarithms.

    Attributes:
        name: Of the law.
        base: Name of the family that is fitted.
        of_logs: Whether that is of the logarithms.
        fixed: Parameters that are known.
        law: Returns the law's entries from shapes, location and scale of the base.
    """

    name: str
    base: str
    of_logs: bool
    fixed: dict[str, float]
    law: Callable[..., dict[str, float]]


FAMILIES = (
    _Family("expon", "expon", False, {"loc": 0}, lambda _, s: {"scale": s}),
    _Family("gamma", "gamma", False, {"loc": 0}, lambda a, _, s: {"a": a, "scale": s}),
    _Family(
        *("lognorm", "norm", True, {}),
        lambda m, s: {"s": s, "scale": float(np.exp(m))},
    ),
    _Family(
        *("weibull_min", "gumbel_l", True, {}),
        lambda m, s: {"c": 1 / s, "scale": float(np.exp(m))},
    ),
)


def fit_law(
    values: Float[np.ndarray, " n"],
    censored: Bool[np.ndarray, " n"] | None = None,
    *,
    grain: float = 0.0,
    apart: int = 1,
    among: int = 1,
) -> LawFit:
    """Fits a law to values, in the order in which they were measured.

    Args:
        values: Above 0.
        censored: Which of them are known to be longer alone.
        grain: Differences up to this are of rounding.
        apart: Number of values from each to the next that does not depend on it; only
            such are tested, and none for drift if that is more than 1.
        among: Number of series that are tested for drift together, by Bonferroni.
    """
    n = values.size
    if censored is None:
        censored = np.zeros(n, bool)
    if n and np.ptp(values) <= grain and not censored.any():
        value = shortest(float(np.median(values)), grain)
        return LawFit({"law": "constant", "value": value}, 1.0, n, "")
    known = n - int(censored.sum())
    if known < FEWEST:
        return LawFit(
            None, np.nan, n, f"{FEWEST} values at least are needed, got {known}"
        )
    if values.min() <= 0:
        return LawFit(None, np.nan, n, "values of 0 are of none of the laws")
    if n < FEWEST * apart:
        why = f"{FEWEST} values that far apart are needed, got {n // apart}"
        return LawFit(None, np.nan, n, f"values depend on {apart} before; {why}")
    if apart == 1 and (why := drift(values, LEVEL / among)):
        return LawFit(None, np.nan, n, why)
    rng = np.random.default_rng(0)
    chosen = _some(n, MOST, rng)
    values, censored = spread(values[chosen], rng), censored[chosen]
    family, parameters = _likeliest(values, censored)
    law = {"law": family.name, **{k: six(v) for k, v in
                                  family.law(*parameters).items()}}  # fmt: skip
    whole = _completed(family, parameters, values, censored, rng)
    whole = whole[::apart]
    p = _p_of(family, whole[_some(whole.size, TESTED, rng)], rng)
    why = "" if p >= LEVEL else f"Anderson-Darling: p = {p:.3g} < {LEVEL:g}"
    return LawFit(law, p, n, why)


def likeliest_quantiles(
    values: Float[np.ndarray, " n"], levels: Float[np.ndarray, " m"]
) -> Float[np.ndarray, " m"]:
    """Returns quantiles of the likeliest law of values, whether it fits or not."""
    from scipy import stats

    family, parameters = _likeliest(values, np.zeros(values.size, bool))
    found = getattr(stats, family.base).ppf(levels, *parameters)
    return np.exp(found) if family.of_logs else found


def fit_in_groups(values: Float[np.ndarray, "groups size"]) -> tuple[LawFit, LawFit]:
    """Fits a log-normal law within groups, and one of a factor that a group shares.

    Two tests follow: of the first member of each group, whose law is the product's, and
    of the difference of the logarithms of two members, which has no factor.

    Args:
        values: Above 0, a row per group in their order, of two or more.

    Returns:
        The law within a group, and the law of the factor, whose median is 1.
    """
    groups, n = len(values), values.size
    if groups < FEWEST:
        why = f"{FEWEST} groups at least are needed, got {groups}"
        return LawFit(None, np.nan, n, why), LawFit(None, np.nan, groups, why)
    if why := drift(np.log(values).mean(axis=1)):
        return LawFit(None, np.nan, n, why), LawFit(None, np.nan, groups, why)
    logs = np.log(values)
    between, within = _variances(logs)
    inner, shared = (
        {"law": "lognorm", "s": six(variance**0.5), "scale": six(scale)}
        for variance, scale in ((within, np.exp(logs.mean())), (between, 1.0))
    )
    rng = np.random.default_rng(0)
    some = _some(groups, TESTED, rng)
    lognorm = FAMILIES[2]
    whole = np.log(spread(values[some, 0], rng))
    apart = logs[some, 0] - logs[some, 1]
    p = min(_p_of(lognorm, column, rng) for column in (whole, apart))
    why = "" if p >= LEVEL else f"Anderson-Darling: p = {p:.3g} < {LEVEL:g}"
    return LawFit(inner, p, n, why), LawFit(shared, p, groups, why)


def shares_factor(values: Float[np.ndarray, "groups size"]) -> bool:
    """Says whether values within a group are closer than those of different groups.

    An analysis of variance of the ranks' normal scores, which holds for any law.
    """
    from scipy import special, stats

    groups, size = values.shape
    if size < 2 or groups < FEWEST or np.ptp(values) == 0:
        return False
    ranks = stats.rankdata(values, axis=None).reshape(values.shape)
    scores = special.ndtri(ranks / (values.size + 1))
    means = scores.mean(axis=1)
    between = size * means.var(ddof=1)
    within = ((scores - means[:, None]) ** 2).sum() / (values.size - groups)
    if within == 0:
        return True
    return bool(stats.f.sf(between / within, groups - 1, values.size - groups) < LEVEL)


def spread(
    values: Float[np.ndarray, " n"], rng: np.random.Generator
) -> Float[np.ndarray, " n"]:
    """Spreads whole numbers over the units from which rounding has gathered them."""
    if (values % 1).any():
        return values
    return values + rng.uniform(-0.5, 0.5, values.size)


def drift(values: Float[np.ndarray, " n"], level: float = LEVEL) -> str:
    """Describes the drift if values rise or fall in their order, else returns nothing.

    Args:
        values: Values in their order.
        level: Least p at which they do not.
    """
    correlation, p = trend(values)
    if p >= level:
        return ""
    fifth = values.size // 5
    first, last = np.median(values[:fifth]), np.median(values[-fifth:])
    return (
        f"they drift, median {first:.4g} in the first fifth and {last:.4g} in the last "
        f"(rank correlation {correlation:+.2f}, p = {p:.2g})"
    )


def trend(values: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """Returns the rank correlation of values with their order, and its p-value."""
    from scipy import stats

    if values.size < FEWEST or np.ptp(values) == 0:
        return 0.0, 1.0
    values = values[_some(values.size, TESTED, np.random.default_rng(0))]
    found: Any = stats.spearmanr(np.arange(values.size), values)
    return float(found.statistic), float(found.pvalue)


def _variances(logs: np.ndarray) -> tuple[float, float]:
    means = logs.mean(axis=1)
    within = float(logs.var(axis=1, ddof=1).mean())
    return max(0.0, float(means.var(ddof=1)) - within / logs.shape[1]), within


def _some(n: int, most: int, rng: np.random.Generator) -> Int[np.ndarray, " m"]:
    """Returns the places of n values, in their order; of more, as many at random."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _likeliest(
    values: np.ndarray, censored: np.ndarray
) -> tuple[_Family, tuple[float, ...]]:
    from scipy import stats

    logs = np.log(values)
    fits: list[tuple[float, _Family, tuple[float, ...]]] = []
    for family in FAMILIES:
        at = logs if family.of_logs else values
        base = getattr(stats, family.base)
        fixed = {f"f{name}": value for name, value in family.fixed.items()}
        data = stats.CensoredData.right_censored(at, censored) if censored.any() else at
        parameters = base.fit(data, **fixed)
        chance = base.logpdf(at[~censored], *parameters).sum()
        chance += base.logsf(at[censored], *parameters).sum()
        if family.of_logs:
            chance -= logs[~censored].sum()
        criterion = len(parameters) - len(fixed) - chance
        fits.append((criterion, family, parameters))
    return min(fits, key=lambda one: one[0])[1:]


def _completed(
    family: _Family,
    parameters: tuple[float, ...],
    values: np.ndarray,
    censored: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Returns values in which what is censored is drawn from the fitted law."""
    from scipy import stats

    at = np.log(values) if family.of_logs else values.copy()
    base = getattr(stats, family.base)
    beyond = base.sf(at[censored], *parameters)
    at[censored] = base.isf(rng.uniform(0, beyond), *parameters)
    return at


def _p_of(family: _Family, at: np.ndarray, rng: np.random.Generator) -> float:
    """Returns the p of the Anderson-Darling test of a family, parameters unknown."""
    from scipy import stats

    base = getattr(stats, family.base)
    found = stats.goodness_of_fit(
        base, at, known_params=family.fixed, n_mc_samples=RESAMPLES, rng=rng
    )
    return float(found.pvalue)


def shortest(value: float, grain: float) -> float:
    """Returns the number of fewest digits that is at most `grain` away."""
    for digits in range(1, 17):
        found = float(f"{value:.{digits}g}")
        if abs(found - value) <= grain:
            return found
    return value


def six(value: SupportsFloat) -> float:
    """Returns a number of six digits."""
    return float(f"{float(value):.6g}")
