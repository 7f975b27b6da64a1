"""Messages that are lost or arrive twice."""

from math import inf, log
from typing import NamedTuple

from ..streams import Purpose, Streams
from .clients import Loss

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


class Sending(NamedTuple):
    """How a message fares.

    Attributes:
        sends: Messages sent, lost ones included.
        wait: Seconds after the first sending at which the last one is sent, or after
            which the client gives up.
        lost: Whether none arrived.
        twice: Whether a copy follows.
        timeout: Seconds between two sendings.
    """

    sends: int
    wait: float
    lost: bool
    twice: bool
    timeout: float


class Lossy:
    """Losses and repeats of the uploads of a group of clients.

    Args:
        config: Chances of losses and repeats, as the scenario has them.
        streams: Random streams of the run.
        first: Number of the group's first client.
        number: Number of clients in the group.
    """

    def __init__(self, config: Loss, streams: Streams, first: int, number: int) -> None:
        self._config, self._first = config, first
        clients = range(first, first + number)
        self._lost = [Keyed(streams, Purpose.LOSS, client) for client in clients]
        self._twice = [Keyed(streams, Purpose.DUPLICATE, client) for client in clients]
        self._log = log(config.chance) if config.chance else -inf
        self.timeout = config.timeout
        """Seconds between two sendings."""

    def send(self, client: int, job: int) -> Sending:
        """Returns the fate of a job's upload.

        The number of losses is geometric, by inversion of one number.
        """
        config, own = self._config, client - self._first
        losses = int(log(self._lost[own].at(job)) / self._log)
        lost = losses > config.retries
        sends = min(losses, config.retries) + 1
        waits = sends if lost else sends - 1
        twice = not lost and self._twice[own].at(job) < config.duplicates
        wait = waits * config.timeout
        return Sending(sends + twice, wait, lost, twice, config.timeout)
