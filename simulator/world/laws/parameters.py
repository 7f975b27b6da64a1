"""Parameters of laws: every client's value, evaluated, drawn or checked."""

import zlib
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from ...parts.base import LocatedError
from ...parts.errors import ScenarioError
from ...parts.expressions import Number, depends_on_client, per_client
from ..streams import Purpose
from .base import Draws, Law, Population, Who

LONGEST_S = 1e15
"""Seconds of the longest place or scale of a law, some 30 million years."""


class ClientValues:
    """One parameter of a law for every client of a population.

    Args:
        exact: The value of all clients, or a list of each client's.
    """

    def __init__(self, exact: list[Any]) -> None:
        self._exact = exact
        self.values = np.array([float(value) for value in exact])
        self._one = self.values.size == 1
        self._ticks: dict[Fraction, np.ndarray] = {}

    @classmethod
    def given(cls, quantity: Any, population: Population, name: str) -> "ClientValues":
        """Evaluates or draws a parameter.

        Args:
            quantity: Number, list, expression or law, as the scenario has it.
            population: The clients.
            name: Name of the parameter, for its key and for messages.
        """
        size, first = population.size, population.first
        if isinstance(quantity, Law):
            key = zlib.crc32(f"{population.stage}.{name}".encode())
            clients = np.arange(first, first + size)
            at = np.full(size, key)
            uniform = population.streams.scattered(Purpose.PARAMETER, clients, at)
            law = quantity.make(population._replace(stage=f"{key}"))
            return cls(law.draw(Draws(uniform, clients - first, 0 * at), None).tolist())
        one = isinstance(quantity, int | float)
        return cls(per_client(quantity, 1 if one else size, name))

    def plus(self, factor: "ClientValues", other: "ClientValues") -> "ClientValues":
        """Returns these values plus a factor times other ones, client by client."""
        size = max(map(len, (self._exact, factor._exact, other._exact)))
        start, times, at = (
            column._exact * (size if column._one else 1)
            for column in (self, factor, other)
        )
        return ClientValues(
            [a + b * c for a, b, c in zip(start, times, at, strict=True)]
        )

    @property
    def rational(self) -> set[Fraction] | None:
        """Returns the distinct values, where all of them are rational."""
        distinct = set(self._exact)
        if not all(isinstance(value, Fraction | int) for value in distinct):
            return None
        return {Fraction(value) for value in distinct}

    def of(self, who: Who) -> Any:
        """Returns the value of a client, or one for each of several."""
        return self.values[0] if self._one else self.values[who]

    def ticks(self, who: Who, tick: Fraction) -> Any:
        """Returns the value in ticks, of a client or for each of several."""
        if tick not in self._ticks:
            self._ticks[tick] = np.array([_ticks(value, tick) for value in self._exact])
        ticks = self._ticks[tick]
        return ticks[0] if self._one else ticks[who]


def check_parameter(
    parameter: Any, num_clients: int, name: str, *, above: bool = False
) -> None:
    """Refuses a client's own number that is negative; or zero, if it must be `above`.

    One that every client draws is checked as a law.

    Raises:
        LocatedError: saying which client's.
    """
    if isinstance(parameter, Law):
        parameter.check(num_clients, name)
        return
    for client, value in enumerate(distinct_values(parameter, num_clients, name)):
        if value < 0 or (above and not value):
            raise LocatedError(
                f"{name} must be {'>' if above else '>='} 0, got {float(value):g} for "
                f"client {client + 1}; change it",
                keys(name),
            )


def check_drawn(parameters: Mapping[str, Any], num_clients: int, name: str) -> bool:
    """Checks the laws of parameters that each client draws; returns if there are any.

    The values themselves are checked when they have been drawn.

    Args:
        parameters: Parameters of a law, by their names.
        num_clients: Number of clients.
        name: Dotted key of the law, for messages.
    """
    drawn = {key: value for key, value in parameters.items() if isinstance(value, Law)}
    for key, value in drawn.items():
        value.check(num_clients, f"{name}.{key}")
    return bool(drawn)


def positive(quantity: Any, num_clients: int, name: str) -> Bool[np.ndarray, " n"]:
    """Says for each client whether a parameter, in seconds or a factor, is above 0.

    Raises:
        LocatedError: it is negative for a client.
    """
    values = distinct_values(quantity, num_clients, name)
    for client, value in enumerate(values):
        if value < 0:
            raise LocatedError(
                f"{name} must be >= 0, got {float(value):g} for client {client + 1}; "
                f"durations are not negative",
                keys(name),
            )
        if value > LONGEST_S:
            raise LocatedError(
                f"{name} must be at most {LONGEST_S:g}, beyond which no clock counts, "
                f"got {float(value):g} for client {client + 1}; use larger units of "
                f"time",
                keys(name),
            )
    return for_each([value > 0 for value in values], num_clients)


def distinct_values(quantity: Any, num_clients: int, name: str) -> list[Number]:
    """Returns the value of every client, or one if they are alike by what is written.

    A million clients are then checked like one.

    Raises:
        LocatedError: a list of another length, or an expression without a value.
    """
    try:
        values = per_client(quantity, num_clients, name)
        own = isinstance(quantity, tuple | list) or depends_on_client(quantity)
        return values if own else values[:1]
    except ScenarioError as error:
        raise LocatedError(str(error), keys(name)) from None


def known_values(quantity: Any, num_clients: int, name: str) -> Float[np.ndarray, " _"]:
    """Returns a parameter's value for every client, or one for all.

    Raises:
        ValueError: every client draws it.
    """
    if isinstance(quantity, Law):
        raise ValueError(f"{name} is drawn for every client")
    return np.array([float(v) for v in distinct_values(quantity, num_clients, name)])


def for_each(found: list[bool], num_clients: int) -> Bool[np.ndarray, " n"]:
    """Repeats what was found for one client of many alike; copies what is of each."""
    return np.broadcast_to(np.array(found, bool), num_clients).copy()


def keys(name: str) -> tuple[str, ...]:
    """Splits a dotted key as errors of a scenario have it."""
    return tuple(name.split("."))


@cache
def _ticks(value: Fraction | float, tick: Fraction) -> int:
    ticks = Fraction(value) / tick
    if ticks.denominator != 1:
        raise AssertionError(f"{value} s is not a multiple of the tick, {tick} s")
    return int(ticks)
