"""Laws made of measurements or of other laws."""

from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from simulator.config.errors import ScenarioError
from simulator.config.expressions import per_client
from simulator.laws.drawing import (
    Column,
    Draws,
    Durations,
    Law,
    Population,
    ScipyLaw,
    Who,
    build,
)
from simulator.laws.parts import Empirical, Markov, Mixture, Scaled, Truncated
from simulator.storage import files, table


class EmpiricalLaw:
    """Measured durations, resampled or replayed.

    Args:
        values: of all clients, or of each client.
        replay: whether they are taken in order.
    """

    def __init__(self, values: list[Float[np.ndarray, " _"]], *, replay: bool) -> None:
        self._one, self._replay = len(values) == 1, replay
        self._values = np.concatenate(values)
        self._length = np.array([part.size for part in values])
        self._start = np.cumsum(self._length) - self._length

    def lattice(self) -> set[Fraction] | None:
        """Measurements lie on no lattice."""
        return None

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        """Returns measured durations, in seconds."""
        del tick
        who = 0 if self._one else draws.who
        length, start = self._length[who], self._start[who]
        if self._replay:
            within = draws.positions % length
        else:
            within = (draws.uniform * length).astype(np.int64)
        return self._values[start + within]


class MixtureLaw:
    """One of several laws for each duration."""

    def __init__(self, config: Mixture, population: Population) -> None:
        self._laws = _parts(config.of, population)
        shares = np.array(config.weights) / np.sum(config.weights)
        self._edges = np.r_[0, np.cumsum(shares)[:-1], 1]

    def lattice(self) -> set[Fraction] | None:
        """Returns the steps of all laws, where all of them have some."""
        return _joint_lattice(self._laws)

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        """Draws durations; what chose the law is stretched to the law's own number."""
        chosen = np.searchsorted(self._edges, draws.uniform, side="right") - 1
        low, high = self._edges[chosen], self._edges[chosen + 1]
        stretched = draws._replace(uniform=_stretched(draws.uniform, low, high))
        return _by_part(self._laws, chosen, stretched, tick)


class MarkovLaw:
    """A law for each regime of a client.

    A client's regime depends on those before it, so its durations must be drawn in
    order, as every stage does.
    """

    def __init__(self, config: Markov, population: Population) -> None:
        self._laws = _parts(config.of, population)
        transition = np.array(config.transition)
        transition /= transition.sum(axis=1, keepdims=True)
        first = stationary(transition)
        cumulative = np.cumsum(np.vstack([transition, first]), axis=1)
        cumulative[:, -1] = 1
        self._edges = np.hstack([np.zeros((len(cumulative), 1)), cumulative])
        # A client that has no regime yet is in the row after the last.
        self._regime = np.full(population.size, len(self._laws), np.int32)

    def lattice(self) -> set[Fraction] | None:
        """Returns the steps of all laws, where all of them have some."""
        return _joint_lattice(self._laws)

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        """Draws durations, each after a change of regime."""
        uniform, who = draws.uniform, draws.who
        chosen = np.empty(uniform.size, np.int64)
        low, high = np.empty(uniform.size), np.empty(uniform.size)
        owners = [who] * uniform.size if isinstance(who, int) else who.tolist()
        for at, client in enumerate(owners):
            edges = self._edges[self._regime[client]]
            regime = int(np.searchsorted(edges, uniform[at], side="right")) - 1
            chosen[at], low[at], high[at] = regime, edges[regime], edges[regime + 1]
            self._regime[client] = regime
        stretched = draws._replace(uniform=_stretched(uniform, low, high))
        return _by_part(self._laws, chosen, stretched, tick)


class TruncatedLaw:
    """A SciPy law within an interval."""

    def __init__(self, config: Truncated, population: Population) -> None:
        self._law = ScipyLaw(config.of, population)
        everyone = np.arange(population.size)
        chance = self._law.probability
        self._low = np.zeros(population.size) + chance(config.low, everyone, below=True)
        self._high = np.zeros(population.size) + chance(
            config.high, everyone, below=False
        )
        impossible = ~(self._high > self._low)
        if impossible.any():
            client = population.first + int(impossible.argmax()) + 1
            raise ScenarioError(
                f"law {config.of.law!r} must have durations between low "
                f"{config.low:g} and high {config.high:g} s, has none for client "
                f"{client}; widen the interval"
            )

    def lattice(self) -> set[Fraction] | None:
        """Returns the steps of the law that is truncated."""
        return self._law.lattice()

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        """Draws durations within the interval."""
        low, high = self._low[draws.who], self._high[draws.who]
        within = low + draws.uniform * (high - low)
        return self._law.draw(draws._replace(uniform=within), tick)


class ScaledLaw:
    """Any law times a factor, plus a shift."""

    def __init__(self, config: Scaled, population: Population) -> None:
        self._law = build(config.of, population)
        self._scale, self._shift = (
            Column(per_client(quantity, population.size, f"scaled.{name}"))
            for name, quantity in (("scale", config.scale), ("shift", config.shift))
        )

    def lattice(self) -> set[Fraction] | None:
        """Returns products of the factors and the law's steps, and the shifts."""
        steps, scale = self._law.lattice(), self._scale.rational
        shift = self._shift.rational
        if steps is None or scale is None or shift is None:
            return None
        return {s * step for s in scale for step in steps} | shift

    def draw(self, draws: Draws, tick: Fraction | None) -> Durations:
        """Draws durations; raises ScenarioError if one is negative."""
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


def stationary(
    transition: Float[np.ndarray, "n n"],
) -> Float[np.ndarray, " n"]:
    """Returns the stationary law of a Markov chain.

    Of several, that which the uniform law tends to on average.
    """
    n = transition.shape[0]
    law = np.full(n, 1 / n)
    lazy = (np.eye(n) + transition) / 2  # the same stationary law, without periods
    for _ in range(64):
        lazy = lazy @ lazy
        lazy /= lazy.sum(axis=1, keepdims=True)  # or rounding doubles every time
    return law @ lazy


def empirical(config: Empirical, population: Population) -> EmpiricalLaw:
    """Reads measured durations.

    Raises:
        DataError: a file that is not there or damaged, or a column that is not in it.
        ScenarioError: numbers that are no durations, or none for some client.
    """
    path = files.located(config.path, f"{population.stage}.path")
    wanted = [config.column] + ([config.client] if config.client else [])
    columns = table.measurements(path, wanted)
    durations = columns[config.column]
    wrong = durations < 0
    if wrong.any():
        row = int(wrong.argmax())
        raise ScenarioError(
            f"column {config.column!r} of {path} must hold durations >= 0, got "
            f"{durations[row]} in row {row + 1}; correct it"
        )
    if not durations.any():
        raise ScenarioError(
            f"column {config.column!r} of {path} must hold a duration above 0, got "
            f"none; time would stand still"
        )
    replay = config.order == "replay"
    if config.client is None:
        return EmpiricalLaw([durations], replay=replay)
    owner = columns[config.client]
    first = population.first
    numbers = range(first + 1, first + population.size + 1)
    values = [durations[owner == number] for number in numbers]
    for number, mine in zip(numbers, values, strict=True):
        if not mine.any():
            raise ScenarioError(
                f"{path} must hold a duration above 0 for every client, got none for "
                f"client {number} in column {config.client!r}; add rows"
            )
    return EmpiricalLaw(values, replay=replay)


def mixture(config: Mixture, population: Population) -> MixtureLaw:
    """Builds a mixture."""
    return MixtureLaw(config, population)


def markov(config: Markov, population: Population) -> MarkovLaw:
    """Builds a law with regimes."""
    return MarkovLaw(config, population)


def truncated(config: Truncated, population: Population) -> TruncatedLaw:
    """Builds a truncated law."""
    return TruncatedLaw(config, population)


def scaled(config: Scaled, population: Population) -> ScaledLaw:
    """Builds a scaled law."""
    return ScaledLaw(config, population)


def _parts(configs: tuple[Any, ...], population: Population) -> list[Law]:
    return [
        build(config, population._replace(stage=f"{population.stage}.of.{number}"))
        for number, config in enumerate(configs)
    ]


def _joint_lattice(laws: list[Law]) -> set[Fraction] | None:
    steps: set[Fraction] = set()
    for law in laws:
        lattice = law.lattice()
        if lattice is None:
            return None
        steps |= lattice
    return steps


def _stretched(
    uniform: Float[np.ndarray, " n"],
    low: Float[np.ndarray, " n"],
    high: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """Maps [low, high) to (0, 1)."""
    inside = (uniform - low) / (high - low)
    return np.clip(inside, 2.0**-53, 1 - 2.0**-53)


def _by_part(
    laws: list[Law], chosen: np.ndarray, draws: Draws, tick: Fraction | None
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
