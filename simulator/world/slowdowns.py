"""Slowdowns of computing: which jobs of which clients take how many times longer.

A slowdown is one class: its options, checks, and its effect on a single job and on the
arrays of many.
"""

import zlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field
from typing_extensions import override

from ..parts.base import LocatedError, Part
from ..parts.errors import ScenarioError
from ..parts.expressions import Quantity
from .clients import Behaviour, Count
from .cycle import Duration, Feature
from .delays import ClientGroup
from .faults import Keyed
from .laws.base import (
    AnyLaw,
    Draws,
    Population,
    check_cycle,
    check_parameter,
    distinct_values,
    keys,
)
from .streams import Purpose

if TYPE_CHECKING:
    from .world import World

Factor = Callable[[int, int, float], float]
"""How many times slower a job computes: of (client, job, time)."""
Some = Int[np.ndarray, " C"]
"""Some clients."""
Numbers = Int[np.ndarray, "C n"]
"""Numbers of jobs of theirs."""
Factors = Float[np.ndarray, "C n"]


class Slowdown(Part):
    """A slowdown of computing: its options, which a scenario chooses by `kind`."""

    in_arrays: ClassVar[bool] = True
    """Whether it has the factors of many jobs at once."""
    of_moments: ClassVar[bool] = False
    """Whether `make` returns factors of moments, `SharedFactors`."""

    @property
    def slows(self) -> tuple[Purpose, ...]:
        """Stages whose times it multiplies: computing, uploads or downloads."""
        return (Purpose.COMPUTE,)

    def check(self, num_clients: int, name: str) -> None:
        """Refuses what `num_clients` clients cannot have.

        Args:
            num_clients: Number of clients.
            name: Dotted key of the slowdown, for messages.

        Raises:
            LocatedError: Saying what and what to do.
        """

    def lasting(self, num_clients: int) -> Float[np.ndarray, " K"]:
        """Returns the permanent factor of each client's computing."""
        return np.ones(num_clients)

    @abstractmethod
    def make(self, population: Population) -> Factor:
        """Returns the factor of a job, by its client, its number and its time.

        Args:
            population: All clients; its stage distinguishes this slowdown from others.
        """

    def of_jobs(self, clients: Some, job: Numbers, population: Population) -> Factors:
        """Returns the factors of jobs; called if it is `in_arrays`."""
        raise NotImplementedError


def _check_named(clients: Sequence[int], num_clients: int, name: str) -> None:
    if max(clients) > num_clients:
        raise LocatedError(
            f"{name}.clients must name clients from 1 to {num_clients}, got "
            f"{max(clients)}; change it",
            keys(f"{name}.clients"),
        )


class NamedSlowdown(Slowdown):
    """Some clients always compute slower."""

    kind: Literal["named"] = "named"
    clients: Annotated[tuple[Count, ...], Field(min_length=1)]
    """Their numbers, from 1."""
    factor: Annotated[float, Field(gt=0)]
    """Factor of the time of computing."""

    def check(self, num_clients: int, name: str) -> None:
        _check_named(self.clients, num_clients, name)

    def lasting(self, num_clients: int) -> Float[np.ndarray, " K"]:
        named = np.isin(np.arange(1, num_clients + 1), self.clients)
        return np.where(named, self.factor, 1.0)

    def make(self, population: Population) -> Factor:
        self.check(population.size, population.stage)
        factors = self.lasting(population.size).tolist()
        return lambda client, job, time: factors[client]

    def of_jobs(self, clients: Some, job: Numbers, population: Population) -> Factors:
        return np.broadcast_to(self.lasting(population.size)[clients, None], job.shape)


class RandomSlowdown(Slowdown):
    """Slows one client in every iteration, chosen uniformly.

    The iteration of a job is its number: the n-th jobs of all clients have one slow
    client among them. Source: A(DP)2SGD, Case I.
    """

    kind: Literal["random"] = "random"
    factor: Annotated[float, Field(gt=0)]
    """Factor of the time of computing."""

    def make(self, population: Population) -> Factor:
        numbers = Keyed(population.streams, Purpose.SLOWEST)
        factor, size = self.factor, population.size

        def slower(client: int, job: int, time: float) -> float:
            slowest = int(numbers.at(job) * size)
            return factor if slowest == client else 1.0

        return slower

    def of_jobs(self, clients: Some, job: Numbers, population: Population) -> Factors:
        first = int(job.min())
        first -= first % 4
        number = int(job.max()) + 1 - first
        uniform = population.streams.uniforms(Purpose.SLOWEST, 0, first, number)
        slowest = (uniform * population.size).astype(np.int64)
        return np.where(slowest[job - first] == clients[:, None], self.factor, 1.0)


class RegimeSlowdown(Slowdown):
    """Every client has slow periods, with their own law of durations."""

    kind: Literal["regime"] = "regime"
    in_arrays: ClassVar[bool] = False
    factor: Annotated[float, Field(gt=0)]
    """Factor of the time of computing in slow times."""
    normal: AnyLaw
    """Law of the length of normal times."""
    slow: AnyLaw
    """Law of the length of slow times."""

    def check(self, num_clients: int, name: str) -> None:
        for part, law in (("normal", self.normal), ("slow", self.slow)):
            check_cycle({f"{name}.{part}": law}, num_clients)

    def make(self, population: Population) -> Factor:
        turns = (Purpose.NORMAL, self.normal), (Purpose.SLOW, self.slow)
        everyone = Population(population.size, population.streams)
        since = ClientGroup(Behaviour(), everyone).renewal(turns).since
        factor = self.factor
        return lambda client, job, time: 1.0 if since(client, time) == time else factor


class ClientPace(Feature):
    """Amounts of work and slowdowns: both multiply draws.

    Args:
        world: World of the clients.
        slowdowns: Slowdowns of its clients.
        gives_steps: Whether jobs have set local steps, whose factor is separate.

    Attributes:
        in_turn: Whether durations depend on when they begin.
    """

    def __init__(
        self, world: "World", slowdowns: Sequence[Slowdown], *, gives_steps: bool
    ) -> None:
        self._amounts = [
            1 if group.config.adds_draws or gives_steps else amount
            for group in world.groups
            for amount in group.amounts
        ]
        self._everyone = Population(world.num_clients, world.streams)
        self._slowdowns: list[tuple[Slowdown, Factor]] = []
        for number, slowdown in enumerate(slowdowns):
            own = self._everyone._replace(stage=f"clients.slowdowns.{number}")
            self._slowdowns.append((slowdown, slowdown.make(own)))
        self.in_turn = any(slowdown.of_moments for slowdown in slowdowns)

    @override
    def duration(self, purpose: Purpose, takes: Duration) -> Duration:
        factors = [by for slow, by in self._slowdowns if purpose in slow.slows]
        if purpose is Purpose.COMPUTE:
            amounts = self._amounts
            factors.insert(0, lambda client, job, time: amounts[client])
        if not factors:
            return takes

        def multiplied(client: int, job: int, time: float) -> float:
            factor = 1.0
            for by in factors:
                factor *= by(client, job, time)
            return takes(client, job, time) * factor

        return multiplied

    def of_jobs(
        self,
        purpose: Purpose,
        clients: Some,
        job: Numbers,
        since: Float[np.ndarray, " C"] | None = None,
    ) -> Factors:
        """Returns the factors of a stage's draws, for many jobs at once.

        Args:
            purpose: Purpose of the draws.
            clients: Their clients.
            job: Numbers of the clients' jobs.
            since: Virtual seconds at which each begins; None where it does not matter.
        """
        factor = np.ones(job.shape)
        if purpose is Purpose.COMPUTE:
            factor *= np.array(self._amounts, np.float64)[clients][:, None]
        for slowdown, by in self._slowdowns:
            if purpose not in slowdown.slows:
                continue
            if isinstance(by, SharedFactors):
                assert since is not None
                factor = factor * by.of_each(clients, since)[:, None]
                continue
            factor = factor * slowdown.of_jobs(clients, job, self._everyone)
        return factor


BLOCK = 32
"""Intervals of a client that are drawn at once; it changes no draw."""
MOST_INTERVALS = 10_000_000
"""Intervals of a client, each of which takes 8 bytes."""


class SharedSlowdown(Slowdown):
    """Slows clients at times, together or each for itself.

    Time is divided into intervals. In each, a client has one draw of a law as the
    factor of its new stages, at a normal score of `sqrt(share) c + sqrt(1 - share) o`:
    `c` is its room's, `o` its own. A client's factors have the same law for any share;
    the memory over successive intervals is the law's, which may be `autoregressive` or
    `markov`.
    """

    kind: Literal["shared"] = "shared"
    of_moments: ClassVar[bool] = True
    factor: AnyLaw
    """Law of the factor: one draw for each interval."""
    every: Annotated[float, Field(gt=0)]
    """Virtual seconds of an interval."""
    share: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Correlation of the scores of two clients of a room: 0 is independent, 1 equal."""
    room: Quantity = 1
    """Number of each client's room, such as `"ceil(m/10)"`."""
    clients: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    """Numbers of the slowed clients, from 1; None for all."""
    stages: Annotated[
        tuple[Literal["compute", "upload", "download"], ...], Field(min_length=1)
    ] = ("compute",)
    """Slowed stages, all by one factor; messages on the client's own link."""

    @property
    def slows(self) -> tuple[Purpose, ...]:
        return tuple(Purpose[stage.upper()] for stage in self.stages)

    def check(self, num_clients: int, name: str) -> None:
        if self.clients is not None:
            _check_named(self.clients, num_clients, name)
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

    def make(self, population: Population) -> "SharedFactors":
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
