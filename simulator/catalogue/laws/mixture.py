"""One of several laws for each duration, chosen independently."""

from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Bool, Float
from pydantic import Field, model_validator

from ...world.laws.base import (
    AnyLaw,
    Draws,
    Durations,
    DurationSampler,
    Law,
    Population,
    Who,
    joint_lattice,
)


class Mixture(Law):
    """Each duration by one of several laws, chosen independently."""

    law: Literal["mixture"] = "mixture"
    of: Annotated[tuple[AnyLaw, ...], Field(min_length=1)]
    """The laws and their chances."""
    weights: tuple[Annotated[float, Field(ge=0)], ...]
    """Chances of the laws, up to a common factor."""

    @model_validator(mode="after")
    def _weighed(self) -> "Mixture":
        if len(self.weights) != len(self.of):
            raise ValueError(
                f"must have as many weights as laws ({len(self.of)}), got "
                f"{len(self.weights)}; add or remove some"
            )
        if not sum(self.weights) > 0:
            raise ValueError("must have a positive weight; raise one")
        return self

    @property
    def remembers(self) -> bool:
        return any(law.remembers for law in self.of)

    def make(self, population: Population) -> "MixtureSampler":
        return MixtureSampler(self, population)

    def check(self, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
        found = check_all(self.of, num_clients, name)
        pairs = zip(found, self.weights, strict=True)
        return np.any([moves for moves, weight in pairs if weight], axis=0)

    def mean_seconds(self, num_clients: int) -> Float[np.ndarray, " _"]:
        return mean_of(self.of, np.array(self.weights), num_clients)


class MixtureSampler(DurationSampler):
    """One of several laws for each duration."""

    def __init__(self, config: Mixture, population: Population) -> None:
        self._laws = samplers(config.of, population)
        shares = np.array(config.weights) / np.sum(config.weights)
        self._edges = np.r_[0, np.cumsum(shares)[:-1], 1]

    def lattice(self) -> set[Fraction] | None:
        return joint_lattice(self._laws)

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        chosen = np.searchsorted(self._edges, draws.uniform, side="right") - 1
        low, high = self._edges[chosen], self._edges[chosen + 1]
        stretched = draws._replace(uniform=stretched_to_unit(draws.uniform, low, high))
        return draw_by_law(self._laws, chosen, stretched, tick)


def samplers(laws: tuple[Law, ...], population: Population) -> list[DurationSampler]:
    """Returns the samplers of several laws, each of which draws its own parameters."""
    return [
        law.make(population._replace(stage=f"{population.stage}.of.{number}"))
        for number, law in enumerate(laws)
    ]


def mean_of(
    laws: tuple[Law, ...], weights: Float[np.ndarray, " n"], num_clients: int
) -> Float[np.ndarray, " K"]:
    """Returns the mean of each client's durations by several laws, each so often.

    Args:
        laws: The laws.
        weights: Their shares of the durations, up to a common factor.
        num_clients: Number of clients.

    Raises:
        ValueError: The mean of a law is unknown.
    """
    total, unknown = np.zeros(num_clients), None
    for law, weight in zip(laws, weights, strict=True):
        try:
            total += weight * law.mean_seconds(num_clients) if weight else 0
        except ValueError as error:
            unknown = error
    if unknown is not None and not np.isinf(total).any():
        raise unknown
    return total / weights.sum()


def stretched_to_unit(
    uniform: Float[np.ndarray, " n"],
    low: Float[np.ndarray, " n"],
    high: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """Maps [low, high) to (0, 1)."""
    inside = (uniform - low) / (high - low)
    return np.clip(inside, 2.0**-53, 1 - 2.0**-53)


def draw_by_law(
    laws: list[DurationSampler], chosen: np.ndarray, draws: Draws, tick: Fraction | None
) -> Durations:
    """Draws each duration by the law that was chosen for it."""
    values = np.zeros(chosen.size, np.float64 if tick is None else np.int64)
    position = draws.positions
    for number, law in enumerate(laws):
        mine = chosen == number
        if mine.any():
            who: Who = draws.who if isinstance(draws.who, int) else draws.who[mine]
            part = Draws(draws.uniform[mine], who, position[mine])
            values[mine] = law.draw(part, tick)
    return values


def check_all(
    laws: tuple[Law, ...], num_clients: int, name: str
) -> list[Bool[np.ndarray, " n"]]:
    """Checks several laws; returns for each and each client if it can take time."""
    return [
        law.check(num_clients, f"{name}.of.{number}") for number, law in enumerate(laws)
    ]
