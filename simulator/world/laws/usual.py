"""SciPy's usual laws, without `scipy.stats`.

Importing that takes 0.7 s of processor time, and a quantile of it 100 microseconds.
Tests compare these laws with SciPy's.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float

from ...parts.errors import ScenarioError

Values = float | np.ndarray


class Distribution(Protocol):
    """A law of certain parameters: one of SciPy's, frozen, or `Placed`."""

    def ppf(self, probabilities: np.ndarray, /) -> np.ndarray:
        """Returns quantiles."""
        ...

    def cdf(self, values: Values, /) -> Values:
        """Returns the probabilities of at most some values."""
        ...

    def sf(self, values: Values, /) -> Values:
        """Returns the probabilities of more than some values."""
        ...

    def mean(self) -> float:
        """Returns the mean; infinite where there is none."""
        ...

    def support(self) -> tuple[Values, Values]:
        """Returns the least and the largest value."""
        ...


class Family(Protocol):
    """A family of laws, called with its parameters: one of SciPy's, or `Usual`."""

    @property
    def name(self) -> str:
        """SciPy's name."""
        ...

    @property
    def shapes(self) -> str | None:
        """Names of its parameters, with commas; None if there are none."""
        ...

    def __call__(self, **parameters: Values) -> Distribution: ...
    def ppf(self, probabilities: np.ndarray, /, *shapes: Values) -> np.ndarray:
        """Returns quantiles."""
        ...

    def cdf(self, values: Values, /, *shapes: Values) -> Values:
        """Returns the probabilities of at most some values."""
        ...

    def sf(self, values: Values, /, *shapes: Values) -> Values:
        """Returns the probabilities of more than some values."""
        ...

    def mean(self, **parameters: Values) -> Values:
        """Returns the mean; infinite where there is none."""
        ...

    def support(self, *shapes: Values) -> tuple[Values, Values]:
        """Returns the least and the largest value."""
        ...


def _positive(*shapes: float) -> bool:
    return all(shape > 0 for shape in shapes)


class Usual(NamedTuple):
    """A standard law; methods are called as those of SciPy's laws.

    Attributes:
        name: SciPy's name.
        ppf: Quantiles by probabilities and shapes.
        below: Probabilities of at most some values, from the least to the largest one,
            by values and shapes.
        above: Probabilities of more than these.
        average: Mean by shapes.
        shapes: Name of its shape, as SciPy has it; None if there is none.
        exists: Returns whether there is a law of such shapes.
        ends: Least and largest value.
        discrete: Whether the values are integers.
    """

    name: str
    ppf: Callable[..., np.ndarray]
    below: Callable[..., Values]
    above: Callable[..., Values]
    average: Callable[..., Values]
    shapes: str | None = None
    exists: Callable[..., bool] = _positive
    ends: tuple[float, float] = (0.0, np.inf)
    discrete: bool = False

    def __call__(
        self, *, loc: Values = 0.0, scale: Values = 1.0, **shapes: Values
    ) -> "Placed":
        """Returns the law `loc + scale * X`."""
        return Placed(self, tuple(shapes.values()), loc, scale)

    def support(self, *shapes: Values) -> tuple[float, float]:
        """Returns the least and the largest value; NaN where there is no such law."""
        return self.ends if self.exists(*shapes) else (np.nan, np.nan)

    def mean(
        self, *, loc: Values = 0.0, scale: Values = 1.0, **shapes: Values
    ) -> Values:
        """Returns the mean of `loc + scale * X`; infinite where it has none."""
        return self.average(*shapes.values()) * scale + loc

    def sf(self, values: Values, *shapes: Values) -> Values:
        """Returns the probabilities of more than some values."""
        return self._from(self.above, 1.0, values, *shapes)

    def cdf(self, values: Values, *shapes: Values) -> Values:
        """Returns the probabilities of at most some values."""
        return self._from(self.below, 0.0, values, *shapes)

    def _from(
        self,
        formula: Callable[..., Values],
        before: float,
        values: Values,
        *shapes: Values,
    ) -> Values:
        """Applies a formula; `before` holds where no value is, or has a probability."""
        low, high = self.ends
        early = np.less(values, low) if self.discrete else np.less_equal(values, low)
        if np.all(early):
            return np.full(np.shape(values), before)[()]
        with np.errstate(all="ignore"):  # at the least value, which is replaced
            found = formula(np.clip(values, low, high), *shapes)
        return np.where(early, before, found)[()]


class Placed(NamedTuple):
    """The law `loc + scale * X` of given shapes; methods as those of SciPy's laws."""

    dist: Usual
    shapes: tuple[Values, ...]
    loc: Values
    scale: Values

    def ppf(self, probabilities: np.ndarray) -> np.ndarray:
        """Returns quantiles."""
        return self.loc + self.scale * self.dist.ppf(probabilities, *self.shapes)

    def cdf(self, values: Values) -> Values:
        """Returns the probabilities of at most some values."""
        return self.dist.cdf(self._standard(values), *self.shapes)

    def sf(self, values: Values) -> Values:
        """Returns the probabilities of more than some values."""
        return self.dist.sf(self._standard(values), *self.shapes)

    def mean(self) -> float:
        """Returns the mean; infinite where it has none."""
        return float(self.dist.average(*self.shapes) * self.scale + self.loc)

    def support(self) -> tuple[Values, Values]:
        """Returns the least and the largest value."""
        low, high = self.dist.support(*self.shapes)
        return self.loc + self.scale * low, self.loc + self.scale * high

    def _standard(self, values: Values) -> Values:
        return (np.asarray(values) - self.loc) / self.scale


def _poisson(u: np.ndarray, mu: Values) -> np.ndarray:
    from scipy.special import pdtr, pdtrik

    found = np.ceil(pdtrik(u, mu))
    below = np.maximum(found - 1, 0)  # rounding may have gone one too far
    return np.where(pdtr(below, mu) >= u, below, found)


def _special(name: str, *values: Values) -> np.ndarray:
    import scipy.special  # 0.1 s: only where a law needs it

    return getattr(scipy.special, name)(*values)


def _normal(u: np.ndarray) -> np.ndarray:
    return _special("ndtri", u)


def _pareto_mean(b: Values) -> Values:
    with np.errstate(divide="ignore"):  # at b = 1, where it is infinite
        return np.where(np.greater(b, 1), b / np.subtract(b, 1.0), np.inf)


USUAL = {
    law.name: law
    for law in (
        Usual(
            "expon",
            lambda u: -np.log1p(-u),
            lambda x: -_special("expm1", -x),
            lambda x: np.exp(-x),
            lambda: 1.0,
        ),
        Usual(
            "gamma",
            lambda u, a: _special("gammaincinv", a, u),
            lambda x, a: _special("gammainc", a, x),
            lambda x, a: _special("gammaincc", a, x),
            lambda a: a,
            "a",
        ),
        Usual(
            "lognorm",
            lambda u, s: np.exp(s * _normal(u)),
            lambda x, s: _special("ndtr", np.log(x) / s),
            lambda x, s: _special("ndtr", -(np.log(x) / s)),
            lambda s: np.sqrt(np.exp(s * s)),
            "s",
        ),
        Usual(
            "norm",
            _normal,
            lambda x: _special("ndtr", x),
            lambda x: _special("ndtr", -x),
            lambda: 0.0,
            ends=(-np.inf, np.inf),
        ),
        Usual(
            "pareto",
            lambda u, b: (1 - u) ** (-1 / b),
            lambda x, b: 1 - x ** (-b),
            lambda x, b: x ** (-b),
            _pareto_mean,
            "b",
            ends=(1.0, np.inf),
        ),
        Usual(
            "poisson",
            _poisson,
            lambda k, mu: _special("pdtr", np.floor(k), mu),
            lambda k, mu: _special("pdtrc", np.floor(k), mu),
            lambda mu: mu,
            "mu",
            lambda mu: mu >= 0,
            discrete=True,
        ),
        Usual(
            "uniform",
            lambda u: u,
            lambda x: x,
            lambda x: 1 - x,
            lambda: 0.5,
            ends=(0.0, 1.0),
        ),
        Usual(
            "weibull_min",
            lambda u, c: (-np.log1p(-u)) ** (1 / c),
            lambda x, c: -_special("expm1", -(x**c)),
            lambda x, c: np.exp(-(x**c)),
            lambda c: _special("gamma", 1 + 1 / c),
            "c",
        ),
    )
}
"""The laws by their names."""


REACH = 10**6
"""Values that are added for a chance at most: more take seconds and gigabytes."""
COUNTED = 2.0**53
"""Beyond this, floats no longer distinguish integers."""


def is_searched(known: Family) -> bool:
    """Returns whether quantiles of a result of `distribution` need a search."""
    return _has_generic(known, "_ppf")


def adds_up(known: Family) -> bool:
    """Returns whether probabilities of a law are sums over all values up to one."""
    return _has_generic(known, "_cdf")


def _has_generic(known: Family, method: str) -> bool:
    if isinstance(known, Usual):  # which knows its own, without SciPy's two seconds
        return False
    import scipy.stats

    generic = scipy.stats.rv_discrete
    own = getattr(type(known), method, None)
    return isinstance(known, generic) and own is getattr(generic, method)


def cdf(known: Family, at: Values, *shapes: Values) -> Values:
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


def check_short(known: Family, *shapes: Values) -> None:
    """Refuses sums over all values of a law that ends beyond reach, such as its mean.

    Raises:
        ValueError: They are too many.
    """
    if not is_searched(known):
        return
    low, high = known.support(*shapes)
    if np.any(np.isfinite(high) & (high - low > REACH)):
        raise ValueError(f"the law {known.name!r} has too many values for its mean")


def remedy(known: Family) -> str:
    """Returns the remedy for a law with too large values."""
    bounded = "zipfian, which ends at n, or " if known.name == "zipf" else ""
    return f"take {bounded}law: truncated with a lower high"


def ppf(
    known: Family, uniform: Float[np.ndarray, " n"], *shapes: Values
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
