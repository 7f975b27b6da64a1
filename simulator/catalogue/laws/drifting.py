"""Drift: durations that become longer or shorter from job to job."""

from fractions import Fraction
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from ...parts.errors import ScenarioError
from ...world.laws.base import (
    AnyLaw,
    ClientValues,
    Draws,
    Durations,
    DurationSampler,
    Law,
    Population,
    check_parameter,
)
from ...world.laws.distributions import Parameter


class Drifting(Law):
    """Any law times a factor that changes over a client's first draws.

    The k-th draw, from 0, is multiplied by `factor ** min(k / over, 1)`: from 1 evenly
    on a logarithmic scale to `factor`, which then stays.
    """

    law: Literal["drifting"] = "drifting"
    of: AnyLaw
    """The law of durations without drift."""
    factor: Parameter
    """Factor in the end, > 0."""
    over: Parameter
    """Number of the client's draws after which the factor stays, > 0."""

    @property
    def remembers(self) -> bool:
        return self.of.remembers

    def make(self, population: Population) -> "DriftingSampler":
        return DriftingSampler(self, population)

    def check(self, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
        for key in ("factor", "over"):
            quantity = getattr(self, key)
            check_parameter(quantity, num_clients, f"{name}.{key}", above=True)
        return self.of.check(num_clients, f"{name}.of")

    def mean_seconds(self, num_clients: int) -> Float[np.ndarray, " _"]:
        within = self.of.mean_seconds(num_clients)
        return within if np.isinf(within).any() else super().mean_seconds(num_clients)


class DriftingSampler(DurationSampler):
    """Any law times a factor that changes over a client's first draws."""

    def __init__(self, config: Drifting, population: Population) -> None:
        self._law = config.of.make(population)
        factor, over = (
            ClientValues.given(quantity, population, f"drifting.{name}")
            for name, quantity in (("factor", config.factor), ("over", config.over))
        )
        for name, values in (("factor", factor.values), ("over", over.values)):
            if not (values > 0).all():
                raise ScenarioError(
                    f"drifting.{name} must be > 0, got {values.min():g}; give a law of "
                    f"larger values"
                )
        self._log, self._over = ClientValues(np.log(factor.values).tolist()), over

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        part = np.minimum(draws.positions / self._over.of(draws.who), 1)
        return self._law.draw(draws, None) * np.exp(part * self._log.of(draws.who))
