"""The law of a constant duration."""

from fractions import Fraction
from typing import Literal

import numpy as np
from jaxtyping import Bool

from .base import ClosedForm, Draws, Durations, DurationSampler, Law, Population
from .distributions import Parameter
from .parameters import ClientValues, check_drawn, known_values, positive


class Constant(Law):
    """Always the same duration.

    Args of the scenario: `value` in virtual seconds, >= 0.
    """

    law: Literal["constant"] = "constant"
    value: Parameter
    """Virtual seconds."""

    @property
    def has_quantiles(self) -> bool:
        return True

    def make(self, population: Population) -> "ConstantSampler":
        return ConstantSampler(self, population)

    def check(self, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
        if check_drawn({"value": self.value}, num_clients, name):
            return np.ones(num_clients, bool)
        return positive(self.value, num_clients, f"{name}.value")

    @property
    def varies(self) -> bool:
        return False

    def closed_form(self, num_clients: int) -> ClosedForm:
        value = known_values(self.value, num_clients, "value")
        return ClosedForm(None, {}, value, np.ones(1), np.zeros(1))


class ConstantSampler(DurationSampler):
    """Always the same duration of a client."""

    def __init__(self, config: Constant, population: Population) -> None:
        self._value = ClientValues.given(config.value, population, "constant.value")

    def lattice(self) -> set[Fraction] | None:
        return self._value.rational

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        if tick is None:
            value = self._value.of(draws.who)
            return np.zeros(draws.uniform.size) + value
        value = self._value.ticks(draws.who, tick)
        return np.zeros(draws.uniform.size, np.int64) + value
