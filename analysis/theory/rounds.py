"""Expected durations of rounds: order statistics of independent delays of any law.

Delays and their laws are in seconds.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from ...simulator.parts.expressions import SLACK

Numbers = int | float | Sequence[int | float] | np.ndarray

TAIL = 1e-17
"""Probability beyond which a law of infinite support on a lattice is cut off."""

MAX_POINTS = 2_000_000
"""Lattice points over which an expectation is summed."""

MAX_LAWS = 300
"""Different laws of an order statistic, or clients of several laws."""

POWERS = 600
"""Powers of e over which a tail is integrated."""


@runtime_checkable
class _Law(Protocol):
    """What is used of a law, frozen as SciPy has it."""

    def cdf(self, x: np.ndarray) -> np.ndarray: ...
    def sf(self, x: np.ndarray) -> np.ndarray: ...
    def mean(self) -> float: ...
    def support(self) -> tuple[float, float]: ...


@runtime_checkable
class _ContinuousLaw(_Law, Protocol):
    """A law with quantiles."""

    def ppf(self, q: np.ndarray) -> np.ndarray: ...


class Lattice(NamedTuple):
    """A law of values shift + scale * X, where X is a discrete law of SciPy.

    Attributes:
        law: Frozen discrete law.
        scale: Seconds of one step, > 0.
        shift: Shift of the law, seconds.
    """

    law: _Law
    scale: float = 1.0
    shift: float = 0.0

    def cdf(self, x: Numbers) -> Float[np.ndarray, "..."]:
        """Returns the probability of a value of at most x seconds."""
        return self.law.cdf(self._steps(x))

    def sf(self, x: Numbers) -> Float[np.ndarray, "..."]:
        """Returns the probability of a value above x seconds."""
        return self.law.sf(self._steps(x))

    def mean(self) -> float:
        """Returns the mean in seconds."""
        return self.shift + self.scale * float(self.law.mean())

    def points(self) -> Float[np.ndarray, " n"]:
        """Returns the values up to the one that is exceeded with probability `TAIL`."""
        low, high = (float(end) for end in self.law.support())
        if not math.isfinite(high):
            high = low + 1
            while high - low < MAX_POINTS and self.law.sf(np.array(high)) > TAIL:
                high = low + 2 * (high - low)
        if not high - low < MAX_POINTS:
            raise ValueError(
                f"a lattice law must have fewer than {MAX_POINTS} values, got "
                f"{high - low:g}; its tail is too heavy to be summed"
            )
        return self.shift + self.scale * np.arange(low, high + 1)

    def _steps(self, x: Numbers) -> Float[np.ndarray, "..."]:
        steps = (np.asarray(x) - self.shift) / self.scale
        # The quotient of one of its values may be rounded to below a whole number.
        return np.floor(steps + SLACK * np.maximum(1, np.abs(steps)))


Delay = _ContinuousLaw | Lattice
"""Law of a client's delay, seconds."""


def expected_order_statistic(
    laws: Sequence[Delay], t: int, counts: Sequence[int] | None = None
) -> float:
    """Computes the expected t-th smallest of independent delays.

    The duration of a round of which the first t contributions are kept and which all
    begin afresh. The integral of the probability that fewer than t of them are over:
    summed where all laws are on lattices, integrated between quantiles otherwise.

    Args:
        laws: Laws, which may differ: frozen laws of SciPy, or `Lattice`; values >= 0.
        t: 1 is the fastest, the number of clients the slowest.
        counts: Clients of each law; by default one.

    Returns:
        Seconds.

    Source: David and Nagaraja, Order Statistics (2003), section 5.2 (unequal laws);
        the number of them that are over at x seconds is Poisson binomial.

    Raises:
        ValueError: t is out of range, a law has negative values, there are too many
            laws to be integrated, or the expectation is not finite.
    """
    numbers = np.ones(len(laws), np.int64) if counts is None else np.asarray(counts)
    total = int(numbers.sum())
    if not 1 <= t <= total:
        raise ValueError(f"t must be between 1 and {total}, got {t}")
    if len(laws) > MAX_LAWS:
        raise ValueError(
            f"there must be at most {MAX_LAWS} different laws, got {len(laws)}; "
            f"simulate it"
        )
    delays = [
        law if isinstance(law, Lattice) or not hasattr(law, "pmf") else Lattice(law)
        for law in laws
    ]
    known, lowest = [np.zeros(1)], 0.0
    for law, number in zip(delays, numbers, strict=True):
        discrete = isinstance(law, Lattice)
        lowest = min(lowest, law.points()[0] if discrete else law.support()[0])
        levels = _levels(int(number), t / total)
        known.append(law.points() if discrete else law.ppf(levels))
    if lowest < 0:
        raise ValueError(f"delays must be >= 0, got a law that begins at {lowest}")
    knots = np.unique(np.concatenate(known))

    def unfinished(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return _fewer_than([(d.cdf(x), d.sf(x)) for d in delays], numbers, t)

    if all(isinstance(law, Lattice) for law in delays):
        middles = (knots[1:] + knots[:-1]) / 2
        return math.fsum(np.diff(knots) * unfinished(middles))
    return _integral(unfinished, knots)


def expected_maximum(
    laws: Sequence[Delay], counts: Sequence[int] | None = None
) -> float:
    """Computes the expected largest of independent delays: a synchronous round.

    Args:
        laws: Laws as for `expected_order_statistic`.
        counts: Clients of each law; by default one.

    Returns:
        Seconds.

    Source: V-29.
    """
    number = len(laws) if counts is None else sum(counts)
    return expected_order_statistic(laws, number, counts)


def _levels(number: int, part: float) -> Float[np.ndarray, " n"]:
    """Returns probabilities between whose quantiles an order statistic is smooth."""
    levels = np.array(
        [1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 1 - 1e-6]
    )
    if number == 1:
        return levels
    tail = np.array([1e-6, 1e-3, 0.1, 0.5, 1, 2, 5, 10, 30]) / number
    spread = math.sqrt(part * (1 - part) / number)
    middle = part + spread * np.array([-9, -6, -4, -2, -1, 0, 1, 2, 4, 6, 9])
    found = np.concatenate([levels, tail, 1 - tail, middle])
    return np.unique(found[(found > 0) & (found < 1)])


def _fewer_than(
    chances: list[tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]],
    numbers: Int[np.ndarray, " laws"],
    t: int,
) -> Float[np.ndarray, " n"]:
    """Computes the probability that fewer than t of independent events happened.

    Args:
        chances: Probabilities of each kind of event and of its opposite; both, because
            small ones would be lost in one minus the other.
        numbers: Numbers of events of each kind.
        t: Whole number from 1 to the number of events.
    """
    total = int(numbers.sum())
    with np.errstate(divide="ignore"):
        if t == total:
            logs = [
                np.where(happened < 0.5, np.log(happened), np.log1p(-did_not))
                for happened, did_not in chances
            ]
            return -np.expm1(numbers @ np.array(logs))
        if t == 1:
            return np.exp(numbers @ np.log([did_not for _, did_not in chances]))
    if len(chances) == 1:  # binomial
        from scipy.special import betainc

        return betainc(total - t + 1, t, chances[0][1])
    if total > MAX_LAWS:
        raise ValueError(
            f"there must be at most {MAX_LAWS} clients of several laws, got {total}; "
            f"simulate it"
        )
    counts = np.zeros((total + 1, len(chances[0][0])))
    counts[0] = 1.0
    for (happened, did_not), number in zip(chances, numbers, strict=True):
        for _ in range(int(number)):
            counts[1:] = counts[1:] * did_not + counts[:-1] * happened
            counts[0] *= did_not
    return counts[:t].sum(axis=0)


def _integral(
    f: Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]],
    knots: Float[np.ndarray, " n"],
) -> float:
    """Integrates a falling function from the first knot to infinity.

    It is smooth between knots. Beyond the last one, above 0, the integral is over the
    logarithm of the argument: there a power of x falls exponentially, so that heavy
    tails of a finite mean end.
    """
    coarse, parts = (_gauss(f, knots, order) for order in (16, 32))
    near = 1e-13 * float(parts.sum())
    if (rough := np.abs(parts - coarse) > near).any():
        from scipy.integrate import tanhsinh  # half a second: few laws need it

        between = tanhsinh(
            lambda x: f(x.ravel()).reshape(x.shape),
            *(knots[:-1][rough], knots[1:][rough]),
            atol=near,
            rtol=1e-11,
        )
        sure = between.error <= 1e-8 * parts.sum()
        parts[rough] = np.where(sure, between.integral, np.nan)  # refused below
    total = math.fsum(parts)
    for power in np.arange(0.0, POWERS):
        ends = np.array([power, power + 1])
        part = _gauss(
            lambda y: f(knots[-1] * np.exp(y)) * knots[-1] * np.exp(y), ends, 32
        )
        total += float(part.sum())
        if part.sum() <= 1e-14 * total:
            return total
    raise ValueError(
        "the expected delay must be finite, or at least its tail fall faster; "
        "simulate it"
    )


def _gauss(
    f: Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]],
    knots: Float[np.ndarray, " n"],
    order: int,
) -> Float[np.ndarray, " pieces"]:
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(knots) / 2
    x = (knots[1:] + knots[:-1])[:, None] / 2 + half[:, None] * nodes
    return f(x.ravel()).reshape(x.shape) @ weights * half
