"""Messages that are lost or arrive twice."""

from math import inf, log
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int
from typing_extensions import override

from .cycle import Feature, Lossless, Sending
from .streams import Purpose, Streams

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


Sendings = tuple[
    Int[np.ndarray, "C n"],
    Float[np.ndarray, "C n"],
    Bool[np.ndarray, "C n"],
    Bool[np.ndarray, "C n"],
]
"""Columns of `Sending`, for successive jobs of some clients."""


class Losses(Lossless, Feature):
    """Uploads of a world in which some messages are lost, or arrive twice.

    Attributes:
        timeouts: Seconds between two sendings of each client's messages; 0 where none
            is lost.
    """

    def __init__(self, world: "World") -> None:
        self._streams = world.streams
        self._blocks: dict[int, tuple[int, list[Sending]]] = {}
        # Where the logarithm of the chance is infinite, nothing is ever lost.
        options = [(-inf, 0.0, 0.0, 0.0)] * len(world.groups)
        for number, group in enumerate(world.groups):
            if (loss := group.config.loss) is not None:
                chance = log(loss.chance) if loss.chance else -inf
                options[number] = chance, loss.retries, loss.duplicates, loss.timeout
        of_each = np.array(options).T[:, world.groups.of]
        self._logs, retries, self._duplicates, self.timeouts = of_each
        self._retries = retries.astype(np.int64)

    @override
    def send(self, client: int, job: int) -> Sending:
        first = job - job % BLOCK
        known, block = self._blocks.get(client, (-1, []))
        if first != known:
            several = self.sendings(np.array([client]), np.array([first]), BLOCK)
            rows = zip(*(column[0].tolist() for column in several), strict=True)
            block = [Sending(*row) for row in rows]
            self._blocks[client] = first, block
        return block[job - first]

    @override
    def sends(self, client: int, sends: int, seconds: float) -> int:
        timeout = self.timeouts[client]
        return min(sends, 1 + int(seconds / timeout)) if timeout else sends

    def sendings(
        self, clients: Int[np.ndarray, " C"], first: Int[np.ndarray, " C"], n: int
    ) -> Sendings:
        """Returns the outcomes of the uploads of `n` jobs of each client.

        The number of losses is geometric, by inversion of one number.

        Args:
            clients: Numbers of the clients.
            first: Number of the first job of each.
            n: How many jobs.
        """
        drawn = np.log(self._streams.rectangle(Purpose.LOSS, clients, first, n))
        losses = (drawn / self._logs[clients, None]).astype(np.int64)
        retries = self._retries[clients, None]
        lost = losses > retries
        sends = np.minimum(losses, retries) + 1
        wait = np.where(lost, sends, sends - 1) * self.timeouts[clients, None]
        copied = self._streams.rectangle(Purpose.DUPLICATE, clients, first, n)
        twice = ~lost & (copied < self._duplicates[clients, None])
        return sends + twice, wait, lost, twice
