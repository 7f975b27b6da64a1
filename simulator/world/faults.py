"""Messages that are lost or arrive twice."""

from math import inf, log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from typing_extensions import override

from ..streams import Purpose, Streams
from .clients import Loss
from .feature import Feature, Lossless, Sending

if TYPE_CHECKING:
    from .world import World

BLOCK = 256


class Keyed:
    """Successive numbers in (0, 1) of one stream of a client.

    Args:
        streams: Random streams of the run.
        purpose: Purpose of the numbers, part of their key.
        client: Client that the numbers belong to, from 0.
    """

    def __init__(self, streams: Streams, purpose: Purpose, client: int = 0) -> None:
        self._streams, self._purpose, self._client = streams, purpose, client
        self._first, self._block = -1, [0.0]

    def at(self, position: int) -> float:
        """Returns the number at a position; cheap where positions are close."""
        first = position - position % BLOCK
        if first != self._first:
            self._first = first
            self._block = self._streams.uniforms(
                self._purpose, self._client, first, BLOCK
            ).tolist()
        return self._block[position - first]


class Sendings(NamedTuple):
    """How uploads of successive jobs of some clients fare, as in `Sending`."""

    sends: Int[np.ndarray, "C n"]
    wait: Float[np.ndarray, "C n"]
    lost: Bool[np.ndarray, "C n"]
    twice: Bool[np.ndarray, "C n"]


class Lossy:
    """Losses and repeats of the uploads of a group of clients.

    Args:
        config: Chances of losses and repeats, as the scenario has them.
        streams: Random streams of the run.
    """

    def __init__(self, config: Loss, streams: Streams) -> None:
        self._config, self._streams = config, streams
        self._blocks: dict[int, tuple[int, list[list[Any]]]] = {}
        self.timeout = config.timeout
        """Seconds between two sendings."""

    def sendings(
        self, clients: Int[np.ndarray, " C"], first: Int[np.ndarray, " C"], n: int
    ) -> Sendings:
        """Returns how the uploads of `n` jobs of each client fare.

        The number of losses is geometric, by inversion of one number.

        Args:
            clients: Numbers of the clients.
            first: Number of the first job of each.
            n: How many jobs.
        """
        config, uniforms = self._config, self._streams.rectangle
        losses = np.zeros((clients.size, n), np.int64)
        if config.chance:
            drawn = np.log(uniforms(Purpose.LOSS, clients, first, n))
            losses = (drawn / log(config.chance)).astype(np.int64)
        lost = losses > config.retries
        sends = np.minimum(losses, config.retries) + 1
        wait = np.where(lost, sends, sends - 1) * config.timeout
        copied = uniforms(Purpose.DUPLICATE, clients, first, n) < config.duplicates
        return Sendings(sends + (~lost & copied), wait, lost, ~lost & copied)

    def send(self, client: int, job: int) -> Sending:
        """Returns the fate of one job's upload."""
        first = job - job % BLOCK
        known, block = self._blocks.get(client, (-1, []))
        if first != known:
            several = self.sendings(np.array([client]), np.array([first]), BLOCK)
            block = [column[0].tolist() for column in several]
            self._blocks[client] = first, block
        values = (column[job - first] for column in block)
        return Sending(*values, timeout=self.timeout)


class Losses(Lossless, Feature):
    """Uploads of a world in which some messages are lost, or arrive twice.

    Args:
        world: World of the clients.
    """

    def __init__(self, world: "World") -> None:
        configs = [group.config.loss for group in world.groups]
        self._lossy = [loss and Lossy(loss, world.streams) for loss in configs]
        self._groups, self._group_of = world.groups, world.groups.of.tolist()
        self.timeouts = np.array([loss.timeout if loss else inf for loss in configs])
        """Seconds between two sendings of each group's messages."""

    @override
    def send(self, client: int, job: int) -> Sending:
        lossy = self._lossy[self._group_of[client]]
        return lossy.send(client, job) if lossy else self._arrives

    @override
    def sends(self, client: int, sends: int, seconds: float) -> int:
        lossy = self._lossy[self._group_of[client]]
        return min(sends, 1 + int(seconds / lossy.timeout)) if lossy else sends

    def sendings(
        self, clients: Int[np.ndarray, " C"], first: Int[np.ndarray, " C"], n: int
    ) -> Sendings:
        """Returns how uploads of clients of any group fare, as `Lossy` does."""
        shape = clients.size, n
        found = Sendings(np.ones(shape, np.int64), *np.zeros((3, *shape)))
        found = found._replace(lost=found.lost > 0, twice=found.twice > 0)
        for number, lossy in enumerate(self._lossy):
            mine = np.flatnonzero(self._groups.of[clients] == number)
            if lossy is not None and mine.size:
                own = lossy.sendings(clients[mine], first[mine], n)
                for column, values in zip(found, own, strict=True):
                    column[mine] = values
        return found
