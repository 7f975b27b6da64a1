"""Laws of durations, drawn in blocks, in seconds or in integer ticks.

A law on a lattice (constant, or any discrete distribution of SciPy) says of which
rational numbers its values are sums of integer multiples; a world whose laws all do so
runs on integer ticks, because float sums of lattice delays put many rows in another
order than exact ones.
"""

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float, Int

from simulator.scenario.errors import ScenarioError
from simulator.scenario.expressions import per_client
from simulator.scenario.laws import Constant, Scipy

Durations = Float[np.ndarray, " n"] | Int[np.ndarray, " n"]

FAST: dict[str, Callable[..., np.ndarray]] = {
    "expon": lambda g, n: g.standard_exponential(n),
    "gamma": lambda g, n, a: g.standard_gamma(a, n),
    "lognorm": lambda g, n, s: np.exp(s * g.standard_normal(n)),
    "norm": lambda g, n: g.standard_normal(n),
    "pareto": lambda g, n, b: 1 + g.pareto(b, n),
    "poisson": lambda g, n, mu: g.poisson(mu, n),
    "uniform": lambda g, n: g.random(n),
    "weibull_min": lambda g, n, c: g.weibull(c, n),
}
"""SciPy's standard laws by NumPy's generators: `rvs` costs 50 microseconds a call."""


class Law(Protocol):
    """The law of one stage's duration, for every client."""

    @abstractmethod
    def lattice(self) -> set[Fraction] | None:
        """Returns numbers of which all durations are integer combinations, or None."""

    @abstractmethod
    def draw(
        self, generator: np.random.Generator, client: int, n: int, tick: Fraction | None
    ) -> Durations:
        """Draws `n` durations of a client, >= 0.

        Args:
            generator: keyed to the block that is drawn.
            client: from 0.
            n: how many.
            tick: seconds of one tick; None asks for seconds.
        """


class ConstantLaw:
    """Always the same duration of a client."""

    def __init__(self, values: list[Fraction | float]) -> None:
        self._values = values

    def lattice(self) -> set[Fraction] | None:
        """Returns the distinct values, where all of them are rational."""
        return _rational(self._values)

    def draw(
        self, generator: np.random.Generator, client: int, n: int, tick: Fraction | None
    ) -> Durations:
        """Returns the client's value `n` times; consumes no randomness."""
        del generator
        if tick is None:
            return np.full(n, float(self._values[client]))
        return np.full(n, _ticks(self._values[client], tick))


class ScipyLaw:
    """Any distribution of `scipy.stats`, shifted and scaled.

    Args:
        config: the law as the scenario has it.
        num_clients: how many clients the parameters are for.
    """

    def __init__(self, config: Scipy, num_clients: int) -> None:
        import scipy.stats  # 1 s: only where a law needs it

        self._name = config.law
        self._distribution: Any = getattr(scipy.stats, config.law)
        self._discrete = isinstance(self._distribution, scipy.stats.rv_discrete)
        names = [n for n in (self._distribution.shapes or "").split(", ") if n]
        columns = [
            per_client(config.parameters[name], num_clients, f"{config.law}.{name}")
            for name in names
        ]
        self._shapes = list(zip(*columns, strict=True)) or [()] * num_clients
        self._loc, self._scale, self._shift = (
            per_client(quantity, num_clients, f"{config.law}.{name}")
            for name, quantity in (
                ("loc", config.loc),
                ("scale", config.scale),
                ("shift", config.shift),
            )
        )

    def lattice(self) -> set[Fraction] | None:
        """Returns the steps of a discrete law whose parameters are rational."""
        if not self._discrete:
            return None
        scale, loc = _rational(self._scale), _rational(self._loc)
        shift = _rational(self._shift)
        if scale is None or loc is None or shift is None:
            return None
        return scale | {s * at for s in scale for at in loc} | shift

    def draw(
        self, generator: np.random.Generator, client: int, n: int, tick: Fraction | None
    ) -> Durations:
        """Draws durations; raises ScenarioError if one is negative or not finite."""
        shapes = [float(shape) for shape in self._shapes[client]]
        loc, scale = self._loc[client], self._scale[client]
        shift = self._shift[client]
        standard = self._standard(generator, n, shapes)
        if tick is not None:
            values = _ticks(shift + scale * loc, tick) + _ticks(
                scale, tick
            ) * standard.astype(np.int64)
        elif self._discrete:
            values = float(shift) + float(scale) * (float(loc) + standard)
        else:
            values = float(shift) + float(loc) + float(scale) * standard
        if not np.isfinite(values).all() or (values < 0).any():
            wrong = values[~np.isfinite(values) | (values < 0)][0]
            raise ScenarioError(
                f"law {self._name!r} must give finite durations >= 0, gave {wrong} to "
                f"client {client + 1}; shift it, or choose a law of positive values"
            )
        return values

    def _standard(
        self, generator: np.random.Generator, n: int, shapes: list[float]
    ) -> np.ndarray:
        if self._name in FAST:
            return FAST[self._name](generator, n, *shapes)
        return self._distribution.rvs(*shapes, size=n, random_state=generator)


def constant(config: Constant, num_clients: int) -> ConstantLaw:
    """Builds the law of a constant duration."""
    return ConstantLaw(per_client(config.value, num_clients, "constant.value"))


def scipy_law(config: Scipy, num_clients: int) -> ScipyLaw:
    """Builds a law from SciPy's distribution of that name."""
    return ScipyLaw(config, num_clients)


def common_tick(laws: list[Law]) -> Fraction | None:
    """Returns the longest tick, seconds, of which all durations are multiples.

    None if a law is not on a lattice, or the lattice is finer than 1e-12 s.
    """
    numbers: set[Fraction] = set()
    for law in laws:
        lattice = law.lattice()
        if lattice is None:
            return None
        numbers |= lattice
    numbers.discard(Fraction(0))
    if not numbers:
        return None
    denominator = int(np.lcm.reduce([n.denominator for n in numbers], dtype=object))
    numerator = int(
        np.gcd.reduce([int(n * denominator) for n in numbers], dtype=object)
    )
    tick = Fraction(numerator, denominator)
    return tick if tick >= Fraction(1, 10**12) else None


def _rational(values: list[Fraction | float]) -> set[Fraction] | None:
    distinct = set(values)
    if not all(isinstance(value, Fraction | int) for value in distinct):
        return None
    return {Fraction(value) for value in distinct}


@cache
def _ticks(value: Fraction | float, tick: Fraction) -> int:
    ticks = Fraction(value) / tick
    if ticks.denominator != 1:
        raise AssertionError(f"{value} s is not a multiple of the tick, {tick} s")
    return int(ticks)
