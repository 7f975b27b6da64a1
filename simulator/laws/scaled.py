"""Any law times a factor, plus a shift."""

from fractions import Fraction
from typing import Literal

import numpy as np
from jaxtyping import Bool

from ..config.errors import ScenarioError
from .base import (
    AnyLaw,
    Draws,
    Durations,
    DurationSampler,
    Law,
    Population,
)
from .distributions import Parameter
from .parameters import ClientValues, check_drawn, positive


class Scaled(Law):
    """Any law times a factor, plus a shift: `shift + scale * X`."""

    law: Literal["scaled"] = "scaled"
    of: AnyLaw
    """The law whose draws are scaled."""
    scale: Parameter = 1
    """Factor of each draw."""
    shift: Parameter = 0
    """Virtual seconds that are added."""

    @property
    def varies(self) -> bool:
        return self.of.varies

    @property
    def remembers(self) -> bool:
        return self.of.remembers

    @property
    def has_quantiles(self) -> bool:
        return self.of.has_quantiles

    def make(self, population: Population) -> "ScaledSampler":
        return ScaledSampler(self, population)

    def check(self, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
        moves = self.of.check(num_clients, f"{name}.of")
        if check_drawn({"scale": self.scale, "shift": self.shift}, num_clients, name):
            return moves
        stretched = positive(self.scale, num_clients, f"{name}.scale")
        shifted = positive(self.shift, num_clients, f"{name}.shift")
        return moves & stretched | shifted


class ScaledSampler:
    """Any law times a factor, plus a shift."""

    def __init__(self, config: Scaled, population: Population) -> None:
        self._law: DurationSampler = config.of.make(population)
        self._scale, self._shift = (
            ClientValues.given(quantity, population, f"scaled.{name}")
            for name, quantity in (("scale", config.scale), ("shift", config.shift))
        )

    def lattice(self) -> set[Fraction] | None:
        steps, scale = self._law.lattice(), self._scale.rational
        shift = self._shift.rational
        if steps is None or scale is None or shift is None:
            return None
        return {s * step for s in scale for step in steps} | shift

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        who = draws.who
        if tick is None:
            values = self._shift.of(who) + self._scale.of(who) * self._law.draw(
                draws, None
            )
        else:
            # A product of lattice numbers is whole in ticks, its factors need not be.
            seconds = self._law.draw(draws, None)
            values = np.rint(
                (self._shift.of(who) + self._scale.of(who) * seconds) / float(tick)
            ).astype(np.int64)
        if (values < 0).any():
            raise ScenarioError(
                f"law 'scaled' must give durations >= 0, gave {values.min()}; change "
                f"its scale or shift"
            )
        return values
