"""Any law times a factor, plus a shift; and sums of draws."""

from collections.abc import Callable
from fractions import Fraction
from operator import truediv
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import model_serializer, model_validator

from ...parts.base import LocatedError
from ...parts.errors import ScenarioError
from ...parts.expressions import Number
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
    mean: Parameter | None = None
    """Virtual seconds of the mean in the long run, in place of `scale` and `shift`."""
    shift: Parameter = 0
    """Virtual seconds that are added."""

    @model_validator(mode="after")
    def _one_size(self) -> "Scaled":
        if self.mean is not None and self.model_fields_set & {"scale", "shift"}:
            raise ValueError("must have a mean, or a scale and a shift; remove one")
        return self

    @model_serializer(mode="wrap")
    def _sized(self, dump: Callable[["Scaled"], dict[str, Any]]) -> dict[str, Any]:
        others = ("mean",) if self.mean is None else ("scale", "shift")
        return {key: value for key, value in dump(self).items() if key not in others}

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
        if self.mean is not None:
            self.own_mean(num_clients, name)
            if check_drawn({"mean": self.mean}, num_clients, name):
                return moves
            return moves & positive(self.mean, num_clients, f"{name}.mean")
        if check_drawn({"scale": self.scale, "shift": self.shift}, num_clients, name):
            return moves
        stretched = positive(self.scale, num_clients, f"{name}.scale")
        shifted = positive(self.shift, num_clients, f"{name}.shift")
        return moves & stretched | shifted

    def own_mean(self, num_clients: int, name: str) -> list[Number]:
        """Returns the mean of the law that is scaled, or one for each client.

        Raises:
            LocatedError: It has none, or none that is known.
        """
        try:
            found = self.of.mean_seconds(num_clients).tolist()
        except ValueError:
            found = [np.inf]
        if not all(0 < mean < np.inf for mean in found):
            raise LocatedError(
                f"{name}.mean must be left out, since no mean of the law within is "
                f"known; give a scale"
            )
        return [Fraction(repr(mean)) for mean in found]

    def mean_seconds(self, num_clients: int) -> Float[np.ndarray, " _"]:
        if self.mean is not None:
            return known_values(self.mean, num_clients, "mean")
        within = self.of.mean_seconds(num_clients)
        if np.isinf(within).any():
            return within
        scale = known_values(self.scale, num_clients, "scale")
        return known_values(self.shift, num_clients, "shift") + scale * within


class ScaledSampler(DurationSampler):
    """Any law times a factor, plus a shift."""

    def __init__(self, config: Scaled, population: Population) -> None:
        self._law: DurationSampler = config.of.make(population)
        self._scale, self._shift = (
            ClientValues.given(quantity, population, f"scaled.{name}")
            for name, quantity in (("scale", config.scale), ("shift", config.shift))
        )
        if config.mean is not None:
            mean = ClientValues.given(config.mean, population, "scaled.mean")
            own = ClientValues(config.own_mean(population.size, "scaled"))
            self._scale = ClientValues.made(truediv, mean, own)

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
