"""Regime switching: a law for each regime of a client, changed by a Markov chain."""

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
    joint_lattice,
)
from .mixture import (
    check_all,
    draw_by_law,
    mean_of,
    samplers,
    stretched_to_unit,
)


class Markov(Law):
    """Regime switching: a law for each regime of a client, changed by a Markov chain.

    Before each duration the client changes its regime by a row of `transition`; the
    first regime has the chain's stationary law.
    """

    law: Literal["markov"] = "markov"
    of: Annotated[tuple[AnyLaw, ...], Field(min_length=1)]
    """The laws of the regimes."""
    transition: tuple[tuple[Annotated[float, Field(ge=0, le=1)], ...], ...]
    """A row per regime: the chances of the regime that comes next, adding up to 1."""

    @model_validator(mode="after")
    def _stochastic(self) -> "Markov":
        n = len(self.of)
        if [len(row) for row in self.transition] != [n] * n:
            raise ValueError(
                f"must have a transition row of {n} chances for each of its {n} laws; "
                f"give {n} rows"
            )
        for number, row in enumerate(self.transition):
            if abs(sum(row) - 1) > 1e-9:
                raise ValueError(
                    f"must have transition rows that add up to 1, got {sum(row):g} in "
                    f"row {number + 1}; change it"
                )
        return self

    @property
    def remembers(self) -> bool:
        return True

    def make(self, population: Population) -> "MarkovSampler":
        return MarkovSampler(self, population)

    def check(self, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
        return np.any(check_all(self.of, num_clients, name), axis=0)

    def mean_seconds(self, num_clients: int) -> Float[np.ndarray, " _"]:
        return mean_of(self.of, stationary(self._transition), num_clients)

    @property
    def _transition(self) -> Float[np.ndarray, "n n"]:
        found = np.array(self.transition)
        return found / found.sum(axis=1, keepdims=True)


class MarkovSampler(DurationSampler):
    """A law for each regime of a client.

    A client's regime depends on those before it, so its durations must be drawn in
    order, as every stage does.
    """

    def __init__(self, config: Markov, population: Population) -> None:
        self._laws = samplers(config.of, population)
        transition = config._transition
        first = stationary(transition)
        cumulative = np.cumsum(np.vstack([transition, first]), axis=1)
        cumulative[:, -1] = 1
        self._edges = np.hstack([np.zeros((len(cumulative), 1)), cumulative])
        # A client that has no regime yet is in the row after the last.
        self._regime = np.full(population.size, len(self._laws), np.int32)

    def lattice(self) -> set[Fraction] | None:
        return joint_lattice(self._laws)

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        uniform, who = draws.uniform, draws.who
        chosen = np.empty(uniform.size, np.int64)
        low, high = np.empty(uniform.size), np.empty(uniform.size)
        owners = [who] * uniform.size if isinstance(who, int) else who.tolist()
        for at, client in enumerate(owners):
            edges = self._edges[self._regime[client]]
            regime = int(np.searchsorted(edges, uniform[at], side="right")) - 1
            chosen[at], low[at], high[at] = regime, edges[regime], edges[regime + 1]
            self._regime[client] = regime
        stretched = draws._replace(uniform=stretched_to_unit(uniform, low, high))
        return draw_by_law(self._laws, chosen, stretched, tick)


def stationary(
    transition: Float[np.ndarray, "n n"],
) -> Float[np.ndarray, " n"]:
    """Returns the stationary law of a Markov chain.

    Of several, the long-run average from the uniform law.
    """
    n = transition.shape[0]
    law = np.full(n, 1 / n)
    lazy = (np.eye(n) + transition) / 2  # the same stationary law, without periods
    for _ in range(64):
        lazy = lazy @ lazy
        lazy /= lazy.sum(axis=1, keepdims=True)  # or rounding doubles every time
    return law @ lazy


def of_lognormal_regimes(
    means: Float[np.ndarray, " n"],
    deviations: Float[np.ndarray, " n"],
    transition: Float[np.ndarray, "n n"],
) -> dict[str, object]:
    """Returns the law of log-normal regimes, as a scenario has it.

    Args:
        means: Means of the logarithms by regime.
        deviations: Their standard deviations.
        transition: Chances of the regime that comes next, a row per regime.
    """
    of = [
        {"law": "lognorm", "s": float(f"{s:.6g}"), "scale": float(f"{np.exp(m):.6g}")}
        for m, s in zip(means, deviations, strict=True)
    ]
    return {"law": "markov", "of": of, "transition": transition.tolist()}
