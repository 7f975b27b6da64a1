"""Any law times a factor, plus a shift; and sums of draws."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import model_serializer, model_validator

from ...parts.errors import ScenarioError
from ...parts.expressions import Quantity
from ..streams import Purpose
from .base import (
    AnyLaw,
    ClientValues,
    Draws,
    Durations,
    DurationSampler,
    Law,
    Population,
    check_drawn,
    known_values,
    positive,
    refuse_two_sizes,
    scaled_to_mean,
)
from .distributions import Parameter

AT_ONCE = 1 << 16
"""Draws that are made and added at once, whatever the number of jobs."""


class Scaled(Law):
    """Any law times a factor, plus a shift: `shift + scale * X`."""

    law: Literal["scaled"] = "scaled"
    of: AnyLaw
    """The law whose draws are scaled."""
    scale: Parameter = 1
    """Factor of each draw."""
    mean: Quantity | None = None
    """Virtual seconds of the mean in the long run, in place of `scale`."""
    shift: Parameter = 0
    """Virtual seconds that are added."""

    @model_validator(mode="after")
    def _one_size(self) -> "Scaled":
        refuse_two_sizes(self)
        return self

    @model_serializer(mode="wrap")
    def _sized(self, dump: Callable[["Scaled"], dict[str, Any]]) -> dict[str, Any]:
        other = "mean" if self.mean is None else "scale"
        return {key: value for key, value in dump(self).items() if key != other}

    def scaled(self, num_clients: int, name: str = "law") -> "Scaled":
        """Returns the law with the scale that gives its mean, if it has one."""
        if self.mean is None:
            return self
        return scaled_to_mean(self, ("shift",), num_clients, name)

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
        return ScaledSampler(self.scaled(population.size), population)

    def check(self, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
        moves = self.of.check(num_clients, f"{name}.of")
        scale = self.scaled(num_clients, name).scale
        if check_drawn({"scale": scale, "shift": self.shift}, num_clients, name):
            return moves
        stretched = positive(scale, num_clients, f"{name}.scale")
        shifted = positive(self.shift, num_clients, f"{name}.shift")
        return moves & stretched | shifted

    def mean_seconds(self, num_clients: int) -> Float[np.ndarray, " _"]:
        law, within = self.scaled(num_clients), self.of.mean_seconds(num_clients)
        if np.isinf(within).any():
            return within
        scale = known_values(law.scale, num_clients, "scale")
        return known_values(self.shift, num_clients, "shift") + scale * within


class ScaledSampler(DurationSampler):
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


class SummedSampler(DurationSampler):
    """Sums of successive draws, as many as a client's job has steps.

    A job's draws are its client's next ones, each keyed by its own position, so that
    they do not depend on how many jobs are drawn together.

    Args:
        law: Law of one step.
        number: Steps of each client's job.
        purpose: Purpose of the draws, part of their key.
        population: The clients.
    """

    def __init__(
        self,
        law: DurationSampler,
        number: Int[np.ndarray, " K"],
        purpose: Purpose,
        population: Population,
    ) -> None:
        self._law, self._number, self._purpose = law, number, purpose
        self._streams, self._first = population.streams, population.first

    def lattice(self) -> set[Fraction] | None:
        return self._law.lattice()

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        position = draws.positions
        who = np.broadcast_to(np.asarray(draws.who), position.shape)
        found = np.empty(position.size, np.float64 if tick is None else np.int64)
        numbers = self._number[who]
        for number in np.unique(numbers).tolist():
            jobs = np.flatnonzero(numbers == number)
            rows = max(1, AT_ONCE // number)
            for start in range(0, jobs.size, rows):
                part = jobs[start : start + rows]
                owner, first = who[part], position[part] * number
                uniform = self._streams.rectangle(
                    self._purpose, owner + self._first, first, number
                )
                at = first[:, None] + np.arange(number)
                each = Draws(uniform.ravel(), np.repeat(owner, number), at.ravel())
                steps = self._law.draw(each, tick).reshape(-1, number)
                found[part] = steps.sum(axis=1)
        return found
