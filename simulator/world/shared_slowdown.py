"""Slowdowns that clients share: of a machine room, or of a network."""

import zlib
from math import isfinite
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from ..parts.base import LocatedError, Quantity
from ..parts.errors import ScenarioError
from .clients import Count
from .laws.base import AnyLaw, Draws, Population
from .laws.parameters import check_parameter, distinct_values, keys
from .presence import Presence
from .slowdowns import Factor, Slowdown
from .streams import Purpose, Streams

BLOCK = 32
"""Intervals of a client that are drawn at once; it changes no draw."""
MOST_INTERVALS = 10_000_000
"""Intervals of a client, each of which takes 8 bytes."""


class SharedSlowdown(Slowdown):
    """Slows clients at times, together or each for itself.

    Time is divided into intervals. In each, a client has one draw of a law as the
    factor of what it begins, at a normal score of `sqrt(share) c + sqrt(1 - share) o`:
    `c` is that of its room, `o` its own. A client's factors have the same law whatever
    the share; that of successive intervals is the law's, which may be `autoregressive`
    or `markov`.
    """

    kind: Literal["shared"] = "shared"
    of_moments: ClassVar[bool] = True
    factor: AnyLaw
    """Law of the factor: one draw for each interval."""
    every: Annotated[float, Field(gt=0)]
    """Virtual seconds of an interval."""
    share: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Correlation of the scores of two clients of a room: 0 is independent, 1 alike."""
    room: Quantity = 1
    """Number of each client's room, such as `"ceil(m/10)"`."""
    clients: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    """Numbers of those that are slowed, from 1; None for all."""
    stages: Annotated[
        tuple[Literal["compute", "upload", "download"], ...], Field(min_length=1)
    ] = ("compute",)
    """What is slowed, all by one factor; messages on the client's own link."""

    @property
    def slows(self) -> tuple[Purpose, ...]:
        return tuple(Purpose[stage.upper()] for stage in self.stages)

    def check(self, num_clients: int, name: str) -> None:
        if self.clients is not None and max(self.clients) > num_clients:
            raise LocatedError(
                f"{name}.clients must name clients from 1 to {num_clients}, got "
                f"{max(self.clients)}; change it",
                keys(f"{name}.clients"),
            )
        check_parameter(self.room, num_clients, f"{name}.room")
        for client, room in enumerate(
            distinct_values(self.room, num_clients, f"{name}.room")
        ):
            if room % 1:
                raise LocatedError(
                    f"{name}.room must be a whole number, got {float(room):g} for "
                    f"client {client + 1}; round it, as in ceil(m/10)",
                    keys(f"{name}.room"),
                )
        self.factor.check(num_clients, f"{name}.factor")

    def make(
        self, num_clients: int, streams: Streams, normal: Presence | None
    ) -> Factor:
        return self.over_time(Population(num_clients, streams))

    def over_time(self, population: Population) -> "SharedFactors":
        return SharedFactors(self, population)


class SharedFactors:
    """Factors of each client, one for each interval of time; called as a `Factor`.

    Args:
        config: The slowdown.
        population: All clients; its stage is part of the key of all draws.
    """

    def __init__(self, config: SharedSlowdown, population: Population) -> None:
        size = population.size
        self._config, self._streams = config, population.streams
        self._law = config.factor.make(population)
        self._turn = zlib.crc32(population.stage.encode())
        rooms = distinct_values(config.room, size, "room")
        self._room = np.broadcast_to([int(room) for room in rooms], size)
        self._slow = np.ones(size, bool)
        if config.clients is not None:
            self._slow = np.isin(np.arange(1, size + 1), config.clients)
        self._known = np.zeros(size, np.int64)
        self._factors = np.empty((size, BLOCK))

    def __call__(self, client: int, job: int, time: float) -> float:
        """Returns the factor of what a client begins at a time, virtual seconds."""
        at = time / self._config.every
        if not at < self._known[client]:
            self._extend(np.array([client]), at)
        return float(self._factors[client, int(at)])

    def of_each(
        self, clients: Int[np.ndarray, " C"], times: Float[np.ndarray, " C"]
    ) -> Float[np.ndarray, " C"]:
        """Returns the same of many clients at once, each named once."""
        at = times / self._config.every
        if (late := at >= self._known[clients]).any():
            self._extend(clients[late], float(at[late].max()))
        return self._factors[clients, at.astype(np.int64)]

    def _extend(self, clients: Int[np.ndarray, " C"], at: float) -> None:
        """Draws the factors of some clients up to an interval."""
        if not (isfinite(at) and at < MOST_INTERVALS):
            raise ScenarioError(
                f"clients.slowdowns.every must divide the run into at most "
                f"{MOST_INTERVALS:,} intervals, got {self._config.every:g} s; take "
                f"longer ones"
            )
        target = (int(at) // BLOCK + 1) * BLOCK
        if target > self._factors.shape[1]:
            wider = np.empty((len(self._factors), 2 * target))
            wider[:, : self._factors.shape[1]] = self._factors
            self._factors = wider
        number = np.maximum(target - self._known[clients], 0)
        who = np.repeat(clients, number)
        first = np.cumsum(number) - number - self._known[clients]
        place = np.arange(who.size) - np.repeat(first, number)
        drawn = self._law.draw(Draws(self._uniform(who, place), who, place), None)
        drawn = np.where(self._slow[who], drawn, 1.0)
        if not (drawn > 0).all():
            raise ScenarioError(
                "clients.slowdowns.factor must be a law of factors > 0, with which "
                "time passes, drew 0; add a shift"
            )
        self._factors[who, place] = drawn
        self._known[clients] += number

    def _uniform(
        self, who: Int[np.ndarray, " n"], place: Int[np.ndarray, " n"]
    ) -> Float[np.ndarray, " n"]:
        """Returns the numbers that factors are drawn by."""

        def of(purpose: Purpose, owner: np.ndarray) -> np.ndarray:
            return self._streams.scattered(purpose, owner, place, self._turn)

        share = self._config.share
        if share in (0, 1):  # as drawn: no digit is lost on the way over scores
            return of(
                *(Purpose.ROOM, self._room[who]) if share else (Purpose.SHOCK, who)
            )
        from scipy.special import ndtr, ndtri

        common = np.sqrt(share) * ndtri(of(Purpose.ROOM, self._room[who]))
        own = np.sqrt(1 - share) * ndtri(of(Purpose.SHOCK, who))
        return np.clip(ndtr(common + own), 2.0**-53, 1 - 2.0**-53)
