"""Slowdowns of computing: which jobs of which clients take how many times longer.

A slowdown is one class: its options, checks, what it makes of a single job, and of the
arrays of many.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import Field

from ..parts.base import LocatedError
from ..parts.parts import Part
from .clients import Count
from .faults import Keyed
from .laws.base import AnyLaw, Population, check_cycle
from .presence import Presence, Turns
from .streams import Purpose, Streams

if TYPE_CHECKING:
    from .shared_slowdown import SharedFactors

Factor = Callable[[int, int, float], float]
"""How many times slower a job computes: of (client, job, time)."""


class Slowdown(Part):
    """A slowdown of computing: its options, which a scenario chooses by `kind`."""

    in_arrays: ClassVar[bool] = True
    """Whether `slow_jobs` says at once which of many jobs are slow; or `over_time`."""
    of_moments: ClassVar[bool] = False
    """Whether `over_time` has factors of moments."""

    @property
    def slows(self) -> tuple[Purpose, ...]:
        """Stages whose times it multiplies: computing, uploads or downloads."""
        return (Purpose.COMPUTE,)

    @property
    def turns(self) -> Turns | None:
        """Laws of normal and of slow times, where each client has these by turns."""
        return None

    def over_time(self, population: Population) -> "SharedFactors | None":
        """Returns the factors of all moments, where they are of moments alone.

        Args:
            population: All clients; its stage tells this slowdown from others.
        """

    def check(self, num_clients: int, name: str) -> None:
        """Refuses what `num_clients` clients cannot have.

        Args:
            num_clients: Number of clients.
            name: Dotted key of the slowdown, for messages.

        Raises:
            LocatedError: Saying what and what to do.
        """

    def lasting(self, num_clients: int) -> Float[np.ndarray, " K"]:
        """Returns by what each client's computing is always multiplied."""
        return np.ones(num_clients)

    @abstractmethod
    def make(
        self, num_clients: int, streams: Streams, normal: Presence | None
    ) -> Factor:
        """Returns the factor of a job, by its client, its number and its time.

        Args:
            num_clients: Number of clients.
            streams: Random streams of the run.
            normal: Normal times of each client, where it has `turns`.
        """

    def slow_jobs(
        self,
        clients: Int[np.ndarray, " C"],
        job: Int[np.ndarray, "C n"],
        num_clients: int,
        streams: Streams,
    ) -> Bool[np.ndarray, "C n"]:
        """Returns which jobs are slow, by `factor`; asked where it is `in_arrays`.

        Args:
            clients: Their clients.
            job: Their numbers.
            num_clients: Number of clients.
            streams: Random streams of the run.
        """
        raise NotImplementedError


class NamedSlowdown(Slowdown):
    """Some clients always compute slower."""

    kind: Literal["named"] = "named"
    clients: Annotated[tuple[Count, ...], Field(min_length=1)]
    """Their numbers, from 1."""
    factor: Annotated[float, Field(gt=0)]
    """Factor of the time of computing."""

    def check(self, num_clients: int, name: str) -> None:
        if max(self.clients) > num_clients:
            raise LocatedError(
                f"clients.slowdowns must name clients from 1 to {num_clients}, got "
                f"{max(self.clients)}; change it",
                ("clients", "slowdowns"),
            )

    def lasting(self, num_clients: int) -> Float[np.ndarray, " K"]:
        named = np.isin(np.arange(1, num_clients + 1), self.clients)
        return np.where(named, self.factor, 1.0)

    def make(
        self, num_clients: int, streams: Streams, normal: Presence | None
    ) -> Factor:
        self.check(num_clients, "")
        slow, factor = {number - 1 for number in self.clients}, self.factor
        return lambda client, job, time: factor if client in slow else 1.0

    def slow_jobs(
        self,
        clients: Int[np.ndarray, " C"],
        job: Int[np.ndarray, "C n"],
        num_clients: int,
        streams: Streams,
    ) -> Bool[np.ndarray, "C n"]:
        named = np.isin(clients, np.array(self.clients) - 1)[:, None]
        return np.broadcast_to(named, job.shape)


class RandomSlowdown(Slowdown):
    """Slows one client in every iteration, chosen uniformly.

    The iteration of a job is its number: the n-th jobs of all clients have one slow
    client among them. Source: A(DP)2SGD, Case I.
    """

    kind: Literal["random"] = "random"
    factor: Annotated[float, Field(gt=0)]
    """Factor of the time of computing."""

    def make(
        self, num_clients: int, streams: Streams, normal: Presence | None
    ) -> Factor:
        numbers, factor = Keyed(streams, Purpose.SLOWEST), self.factor

        def slower(client: int, job: int, time: float) -> float:
            slowest = int(numbers.at(job) * num_clients)
            return factor if slowest == client else 1.0

        return slower

    def slow_jobs(
        self,
        clients: Int[np.ndarray, " C"],
        job: Int[np.ndarray, "C n"],
        num_clients: int,
        streams: Streams,
    ) -> Bool[np.ndarray, "C n"]:
        first = int(job.min())
        first -= first % 4
        number = int(job.max()) + 1 - first
        uniform = streams.uniforms(Purpose.SLOWEST, 0, first, number)
        slowest = (uniform * num_clients).astype(np.int64)
        return slowest[job - first] == clients[:, None]


class RegimeSlowdown(Slowdown):
    """Every client is slow at times, for times of a law of their own."""

    kind: Literal["regime"] = "regime"
    in_arrays: ClassVar[bool] = False
    factor: Annotated[float, Field(gt=0)]
    """Factor of the time of computing in slow times."""
    normal: AnyLaw
    """Law of the length of normal times."""
    slow: AnyLaw
    """Law of the length of slow times."""

    @property
    def turns(self) -> Turns:
        return (Purpose.NORMAL, self.normal), (Purpose.SLOW, self.slow)

    def check(self, num_clients: int, name: str) -> None:
        for part, law in (("normal", self.normal), ("slow", self.slow)):
            check_cycle({f"{name}.{part}": law}, num_clients)

    def make(
        self, num_clients: int, streams: Streams, normal: Presence | None
    ) -> Factor:
        assert normal is not None
        since, factor = normal.since, self.factor
        return lambda client, job, time: 1.0 if since(client, time) == time else factor
