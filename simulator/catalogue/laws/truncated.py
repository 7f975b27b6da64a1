"""A distribution of SciPy's within bounds: restricted to them, or moved to them."""

from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Bool
from pydantic import Field, model_validator

from ...parts.errors import ScenarioError
from ...world.laws.base import Draws, Durations, DurationSampler, Law, Population
from ...world.laws.distributions import Scipy, ScipySampler, distribution


class Truncated(Law):
    """A distribution of `scipy.stats`, restricted to an interval."""

    law: Literal["truncated"] = "truncated"
    of: Scipy
    """The law whose draws are kept within bounds."""
    low: Annotated[float, Field(ge=0)] = 0.0
    """Least duration, virtual seconds."""
    high: Annotated[float, Field(gt=0)] | None = None
    """Longest duration, virtual seconds (default: none)."""

    @model_validator(mode="after")
    def _ordered(self) -> "Truncated":
        if self.high is not None and self.low >= self.high:
            raise ValueError(
                f"must have low below high, got {self.low:g} and {self.high:g}; "
                f"exchange them"
            )
        return self

    @property
    def has_quantiles(self) -> bool:
        return True

    def make(self, population: Population) -> DurationSampler:
        return TruncatedSampler(self, population)

    def check(self, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
        distribution(self.of.law, f"{name}.of")
        return np.ones(num_clients, bool)


class Clipped(Truncated):
    """A distribution of `scipy.stats` whose draws beyond a bound are moved to it.

    With `low: 0` the durations are `max(0, X)`, as code that draws from `random.gauss`
    has them; `truncated` draws from what is within the bounds instead.
    """

    law: Literal["clipped"] = "clipped"  # pyright: ignore

    def make(self, population: Population) -> DurationSampler:
        return ClippedSampler(self, population)


class TruncatedSampler(DurationSampler):
    """A SciPy law within an interval."""

    def __init__(self, config: Truncated, population: Population) -> None:
        self._law = ScipySampler(config.of, population)
        everyone = np.arange(population.size)
        chance = self._law.probability
        self._low = np.zeros(population.size) + chance(config.low, everyone, below=True)
        high = np.inf if config.high is None else config.high
        self._high = np.zeros(population.size) + chance(high, everyone, below=False)
        impossible = ~(self._high > self._low)
        if impossible.any():
            client = population.first + int(impossible.argmax()) + 1
            raise ScenarioError(
                f"law {config.of.law!r} must have durations between low "
                f"{config.low:g} and high {high:g} s, has none for client "
                f"{client}; widen the interval"
            )

    def lattice(self) -> set[Fraction] | None:
        return self._law.lattice()

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        low, high = self._low[draws.who], self._high[draws.who]
        within = low + draws.uniform * (high - low)
        return self._law.draw(draws._replace(uniform=within), tick)


class ClippedSampler(DurationSampler):
    """A SciPy law whose draws beyond bounds are moved to them."""

    def __init__(self, config: Clipped, population: Population) -> None:
        self._law = ScipySampler(config.of, population)
        self._low, self._high = config.low, config.high
        everyone = np.arange(population.size)
        at_most = self._law.probability(config.low, everyone, below=False)
        nothing = (np.zeros(population.size) + at_most >= 1) & (config.low == 0)
        if nothing.any():
            raise ScenarioError(
                f"law {config.of.law!r} must have durations above 0 s to be clipped, "
                f"has none for client {population.first + int(nothing.argmax()) + 1}; "
                f"raise its loc"
            )

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        standard = self._law.quantile(draws.uniform, draws.who)
        return np.clip(self._law.place(standard, draws.who), self._low, self._high)
