"""Memory: durations whose normal scores follow an autoregressive process."""

from collections.abc import Callable
from fractions import Fraction
from math import sqrt
from typing import Literal, TypeVar

import numpy as np
from jaxtyping import Bool, Float
from pydantic import Field

from ...parts.base import LocatedError
from ...parts.errors import ScenarioError
from ...world.laws.base import (
    AnyLaw,
    ClientValues,
    ClosedForm,
    Draws,
    Durations,
    DurationSampler,
    Law,
    Population,
    Who,
    distinct_values,
    keys,
)
from ...world.laws.distributions import Parameter

Numbers = TypeVar("Numbers", float, np.ndarray)


class Autoregressive(Law):
    """Any law by its quantiles, whose successive draws depend on each other.

    The normal scores of a client's draws are `sqrt(1 - noise) x + sqrt(noise) w`: `x`
    is a stationary autoregressive process of order 1, `w` is new for each draw. Scores
    that are h draws apart have the correlation `(1 - noise) * correlation**h`; each
    single duration has the law `of`.
    """

    law: Literal["autoregressive"] = "autoregressive"
    of: AnyLaw
    """Law of each duration: one that is drawn by its quantiles."""
    correlation: Parameter
    """Correlation of successive values of the process, above -1 and at most 1. With 1,
    which needs noise, it is a level of the client that is drawn once."""
    noise: Parameter = Field(default=0)
    """Share of the scores' variance that is new for each draw, from 0 to below 1."""

    @property
    def remembers(self) -> bool:
        return True

    def make(self, population: Population) -> "AutoregressiveSampler":
        return AutoregressiveSampler(self, population)

    def check(self, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
        if not self.of.has_quantiles:
            raise LocatedError(
                f"{name}.of must be a law that is drawn by its quantiles, "
                f"got {getattr(self.of, 'law', '')!r}; take constant, empirical with "
                "order: resample, one of scipy.stats, or one of these truncated or "
                "scaled",
                keys(f"{name}.of"),
            )
        known = {"correlation": np.zeros(1), "noise": np.full(1, 0.5)}
        for key in known:
            quantity = getattr(self, key)
            if isinstance(quantity, Law):  # what is drawn is checked when it is known
                quantity.check(num_clients, f"{name}.{key}")
            else:
                values = distinct_values(quantity, num_clients, f"{name}.{key}")
                known[key] = np.array([float(value) for value in values])
        if mistake := _mistake(**known):
            key, words = mistake
            raise LocatedError(f"{name}.{key} {words}", keys(f"{name}.{key}"))
        return self.of.check(num_clients, f"{name}.of")

    def closed_form(self, num_clients: int) -> ClosedForm:
        return self.of.closed_form(num_clients)._replace(independent=False)

    def mean_seconds(self, num_clients: int) -> Float[np.ndarray, " _"]:
        return self.of.mean_seconds(num_clients)


class AutoregressiveSampler(DurationSampler):
    """Any law by its quantiles, at numbers that depend on those before them.

    The score of each draw has the law that the process gives it after the client's
    earlier ones (a Kalman filter), so that one number makes one duration. A client's
    durations must be drawn in order, as every stage does.
    """

    def __init__(self, config: Autoregressive, population: Population) -> None:
        self._law = config.of.make(population)
        correlation, noise = (
            ClientValues.given(quantity, population, f"autoregressive.{name}").values
            for name, quantity in (
                ("correlation", config.correlation),
                ("noise", config.noise),
            )
        )
        if mistake := _mistake(correlation, noise):
            raise ScenarioError(f"autoregressive.{' '.join(mistake)}")
        size = population.size
        self._rho, self._noise = (
            np.broadcast_to(values, size) for values in (correlation, noise)
        )
        self._mean, self._variance = np.zeros(size), 1 - self._noise
        """Of each client's process at its next draw, given its scores."""

    def lattice(self) -> set[Fraction] | None:
        return self._law.lattice()

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        from scipy.special import ndtr, ndtri

        chance = ndtr(self._scores(ndtri(draws.uniform), draws.who))
        inside = np.clip(chance, 2.0**-53, 1 - 2.0**-53)
        return self._law.draw(draws._replace(uniform=inside), tick)

    def _scores(self, new: Float[np.ndarray, " n"], who: Who) -> np.ndarray:
        if isinstance(who, int):
            return self._of_one(new, who)
        order = np.argsort(who, kind="stable")
        owner, first, counts = np.unique(
            who[order], return_index=True, return_counts=True
        )
        found = np.empty(new.size)
        longest = int(counts.max(initial=0))
        if owner.size * 8 < longest:
            for client, at, n in zip(
                owner.tolist(), first.tolist(), counts.tolist(), strict=True
            ):
                mine = order[at : at + n]
                found[mine] = self._of_one(new[mine], client)
            return found
        for turn in range(longest):
            left = counts > turn
            at, client = order[first[left] + turn], owner[left]
            found[at], self._mean[client], self._variance[client] = _after(
                new[at],
                self._mean[client],
                self._variance[client],
                self._rho[client],
                self._noise[client],
                np.sqrt,
            )
        return found

    def _of_one(self, new: np.ndarray, client: int) -> np.ndarray:
        """Returns the same of one client, in Python's numbers."""
        mean, variance = float(self._mean[client]), float(self._variance[client])
        rho, noise = float(self._rho[client]), float(self._noise[client])
        found = []
        for each in new.tolist():
            score, mean, variance = _after(each, mean, variance, rho, noise, sqrt)
            found.append(score)
        self._mean[client], self._variance[client] = mean, variance
        return np.array(found)


def _after(
    new: Numbers,
    mean: Numbers,
    variance: Numbers,
    rho: Numbers,
    noise: Numbers,
    root: Callable[[Numbers], Numbers],
) -> tuple[Numbers, Numbers, Numbers]:
    """Returns a score, and mean and variance of the process at the next draw."""
    total = variance + noise
    score = mean + root(total) * new
    gain = variance / total
    mean = rho * (mean + gain * (score - mean))
    own = (1 - rho * rho) * (1 - noise)
    return score, mean, rho * rho * ((1 - gain) * variance) + own


def _mistake(
    correlation: Float[np.ndarray, " _"], noise: Float[np.ndarray, " _"]
) -> tuple[str, str] | None:
    """Returns the parameter that is of no such process, and what it must be."""
    below = (correlation > -1) & (correlation <= 1)
    alike = (correlation == 1) & (noise == 0)
    for key, values, wrong, words in (
        ("correlation", correlation, ~below, "> -1 and <= 1"),
        ("noise", noise, ~((noise >= 0) & (noise < 1)), ">= 0 and < 1"),
        ("correlation", correlation, alike, "< 1 where noise is 0"),
    ):
        if wrong.any():
            at = int(wrong.argmax())
            value = np.broadcast_to(values, wrong.shape)[at]
            return key, f"must be {words}, got {value:g} for client {at + 1}; change it"
    return None
