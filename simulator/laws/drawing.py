"""Laws of durations, drawn by inversion, in seconds or in integer ticks.

Every draw is the law's quantile function at one keyed number in (0, 1): then one
client's next hundred draws and the next draw of a million clients are the same vector
operation, and mixtures, regimes and truncation are compositions. SciPy's few laws
without a quantile function in closed form are inverted numerically, which takes about a
millisecond a draw.

A law on a lattice (constant, or any discrete distribution of SciPy) says of which
rational numbers its values are sums of integer multiples; a world whose laws all do so
runs on integer ticks, because float sums of lattice delays put many rows in another
order than exact ones.
"""

import zlib
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from simulator.config.errors import ScenarioError
from simulator.config.expressions import per_client
from simulator.laws.parts import Constant, Scipy
from simulator.streams import Purpose, Streams

Durations = Float[np.ndarray, " n"] | Int[np.ndarray, " n"]
Who = int | Int[np.ndarray, " n"]
"""One client of all draws, or a client for each."""


class Population(NamedTuple):
    """The clients whose law is built.

    Attributes:
        size: how many.
        streams: keyed by the run's seed, for parameters that are drawn.
        first: number of the first of them, from 0.
        stage: what the law is for; keys drawn parameters, and for messages.
    """

    size: int
    streams: Streams
    first: int = 0
    stage: str = "law"


class Draws(NamedTuple):
    """What a law needs for some durations.

    Attributes:
        uniform: numbers in (0, 1), one for each.
        who: whose they are, from 0 within the population.
        position: how many durations of this law the client had before; an integer for
            the first of successive ones of a single client.
    """

    uniform: Float[np.ndarray, " n"]
    who: Who
    position: Int[np.ndarray, " n"] | int

    @property
    def positions(self) -> Int[np.ndarray, " n"]:
        """How many durations of this law the client had before each."""
        if isinstance(self.position, int):
            return self.position + np.arange(self.uniform.size)
        return self.position


@runtime_checkable
class Law(Protocol):
    """The law of one stage's duration, for every client of a population."""

    @abstractmethod
    def lattice(self) -> set[Fraction] | None:
        """Returns numbers of which all durations are integer combinations, or None."""

    @abstractmethod
    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        """Returns the durations, >= 0, in ticks of `tick` seconds or in seconds."""


def build(config: Any, population: Population) -> Law:
    """Builds a law of any configuration."""
    return config.make(population)


class Column:
    """One parameter of a law for every client of a population.

    Args:
        exact: the value of all clients, or of each.
    """

    def __init__(self, exact: list[Any]) -> None:
        self._exact = exact
        self.values = np.array([float(value) for value in exact])
        self._one = self.values.size == 1

    @classmethod
    def given(cls, quantity: Any, population: Population, name: str) -> "Column":
        """Evaluates or draws a parameter.

        Args:
            quantity: as the scenario has it.
            population: the clients.
            name: of the parameter.
        """
        size, first = population.size, population.first
        if isinstance(quantity, Scipy):
            key = zlib.crc32(f"{population.stage}.{name}".encode())
            clients = np.arange(first, first + size)
            at = np.full(size, key)
            uniform = population.streams.scattered(Purpose.PARAMETER, clients, at)
            law = build(quantity, population._replace(stage=f"{key}"))
            return cls(law.draw(Draws(uniform, clients - first, 0 * at), None).tolist())
        one = isinstance(quantity, int | float)
        return cls(per_client(quantity, 1 if one else size, name))

    def plus(self, factor: "Column", other: "Column") -> "Column":
        """Returns this column plus a factor times another one."""
        size = max(map(len, (self._exact, factor._exact, other._exact)))
        start, times, at = (
            column._exact * (size if column._one else 1)
            for column in (self, factor, other)
        )
        return Column([a + b * c for a, b, c in zip(start, times, at, strict=True)])

    @property
    def rational(self) -> set[Fraction] | None:
        """Returns the distinct values, where all of them are rational."""
        distinct = set(self._exact)
        if not all(isinstance(value, Fraction | int) for value in distinct):
            return None
        return {Fraction(value) for value in distinct}

    def of(self, who: Who) -> Any:
        """Returns the value of a client, or one for each of several."""
        return self.values[0] if self._one else self.values[who]

    def ticks(self, who: Who, tick: Fraction) -> Any:
        """Returns the value in ticks, of a client or for each of several."""
        if self._one:
            return _ticks(self._exact[0], tick)
        if isinstance(who, int):
            return _ticks(self._exact[who], tick)
        return np.array([_ticks(self._exact[client], tick) for client in who.tolist()])


def _standard_poisson(u: np.ndarray, mu: Any) -> np.ndarray:
    from scipy.special import pdtr, pdtrik

    found = np.ceil(pdtrik(u, mu))
    below = np.maximum(found - 1, 0)  # rounding may have gone one too far
    return np.where(pdtr(below, mu) >= u, below, found)


def _normal(u: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri

    return ndtri(u)


def _gamma(u: np.ndarray, a: Any) -> np.ndarray:
    from scipy.special import gammaincinv

    return gammaincinv(a, u)


QUANTILES: dict[str, Callable[..., np.ndarray]] = {
    "expon": lambda u: -np.log1p(-u),
    "gamma": _gamma,
    "lognorm": lambda u, s: np.exp(s * _normal(u)),
    "norm": _normal,
    "pareto": lambda u, b: (1 - u) ** (-1 / b),
    "poisson": _standard_poisson,
    "uniform": lambda u: u,
    "weibull_min": lambda u, c: (-np.log1p(-u)) ** (1 / c),
}
"""Quantiles of SciPy's standard laws without the 100 microseconds of its `ppf`."""


class ConstantLaw:
    """Always the same duration of a client."""

    def __init__(self, config: Constant, population: Population) -> None:
        self._value = Column.given(config.value, population, "constant.value")

    def lattice(self) -> set[Fraction] | None:
        """Returns the distinct values, where all of them are rational."""
        return self._value.rational

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        """Returns the clients' values."""
        if tick is None:
            value = self._value.of(draws.who)
            return np.zeros(draws.uniform.size) + value
        value = self._value.ticks(draws.who, tick)
        return np.zeros(draws.uniform.size, np.int64) + value


class ScipyLaw:
    """Any distribution of `scipy.stats`, shifted and scaled.

    Args:
        config: the law as the scenario has it.
        population: the clients.
    """

    def __init__(self, config: Scipy, population: Population) -> None:
        import scipy.stats  # 1 s: only where a law needs it

        self._name, self._first = config.law, population.first
        self._distribution: Any = getattr(scipy.stats, config.law)
        self._discrete = isinstance(self._distribution, scipy.stats.rv_discrete)
        names = [n for n in (self._distribution.shapes or "").split(", ") if n]

        def column(name: str, quantity: Any) -> Column:
            return Column.given(quantity, population, f"{config.law}.{name}")

        self._shapes = [column(name, config.parameters[name]) for name in names]
        self._loc = column("loc", config.loc)
        self._scale = column("scale", config.scale)
        self._shift = column("shift", config.shift)
        self._least = self._shift.plus(self._scale, self._loc)

    def lattice(self) -> set[Fraction] | None:
        """Returns the steps of a discrete law whose parameters are rational."""
        if not self._discrete:
            return None
        scale, loc = self._scale.rational, self._loc.rational
        shift = self._shift.rational
        if scale is None or loc is None or shift is None:
            return None
        return scale | {s * at for s in scale for at in loc} | shift

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        """Draws durations; raises ScenarioError if one is negative or not finite."""
        who = draws.who
        standard = self.quantile(draws.uniform, who)
        if tick is not None:
            scale = self._scale.ticks(who, tick)
            values = self._least.ticks(who, tick) + scale * standard.astype(np.int64)
        else:
            values = self.place(standard, who)
        wrong = ~(np.isfinite(values) & (values >= 0))
        if wrong.any():
            at = int(wrong.argmax())
            client = who if isinstance(who, int) else int(who[at])
            raise ScenarioError(
                f"law {self._name!r} must give finite durations >= 0, gave "
                f"{values[at]} to client {self._first + client + 1}; shift it, or "
                f"choose a law of positive values"
            )
        return values

    def quantile(self, uniform: Float[np.ndarray, " n"], who: Who) -> np.ndarray:
        """Returns the standard law's quantiles, neither scaled nor shifted."""
        shapes = [column.of(who) for column in self._shapes]
        if self._name in QUANTILES:
            return QUANTILES[self._name](uniform, *shapes)
        return self._distribution.ppf(uniform, *shapes)

    def probability(self, seconds: float, who: Who, *, below: bool) -> Any:
        """Returns the chance of at most (`below`: less than) so many seconds."""
        shapes = [column.of(who) for column in self._shapes]
        loc, scale, shift = (c.of(who) for c in (self._loc, self._scale, self._shift))
        if not self._discrete:
            at = (seconds - shift - loc) / scale
        else:
            at = (seconds - shift) / scale - loc
            at = np.ceil(at - 1e-9) - 1 if below else np.floor(at + 1e-9)
        return self._distribution.cdf(at, *shapes)

    def place(self, standard: np.ndarray, who: Who) -> np.ndarray:
        """Scales and shifts values of the standard law, to seconds."""
        loc, scale, shift = (c.of(who) for c in (self._loc, self._scale, self._shift))
        if self._discrete:
            return shift + scale * (loc + standard)
        return shift + loc + scale * standard


def constant(config: Constant, population: Population) -> ConstantLaw:
    """Builds the law of a constant duration."""
    return ConstantLaw(config, population)


def scipy_law(config: Scipy, population: Population) -> ScipyLaw:
    """Builds a law from SciPy's distribution of that name."""
    return ScipyLaw(config, population)


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


@cache
def _ticks(value: Fraction | float, tick: Fraction) -> int:
    ticks = Fraction(value) / tick
    if ticks.denominator != 1:
        raise AssertionError(f"{value} s is not a multiple of the tick, {tick} s")
    return int(ticks)
