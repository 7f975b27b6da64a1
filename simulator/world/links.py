"""Resources that clients share: a bottleneck link, and a server with a queue."""

import heapq
from collections.abc import Callable

import simpy

from .clock import Then


class SharedLink:
    """A link whose bandwidth the messages under way share in equal parts.

    Processor sharing in virtual work: every message under way gets the same share, so
    they end in the order of the work that each had to see done when it came.

    Args:
        env: The clock.
        bandwidth: Bytes per virtual second.
    """

    def __init__(self, env: simpy.Environment, bandwidth: float) -> None:
        self._env, self._bandwidth = env, bandwidth
        self._work = 0.0  # bytes that a message under way from the start has sent
        self._since = 0.0
        self._under_way: list[tuple[float, int, int, Then]] = []
        self._sequence = 0
        self._expected = 0

    def send(self, client: int, size: float, then: Then) -> None:
        """Sends a message of `size` bytes; calls `then` with its client at its end."""
        self._advance()
        self._sequence += 1
        due = self._work + size
        heapq.heappush(self._under_way, (due, self._sequence, client, then))
        self._expect()

    def _advance(self) -> None:
        now = self._env.now
        if self._under_way:
            share = self._bandwidth / len(self._under_way)
            self._work += (now - self._since) * share
        self._since = now

    def _expect(self) -> None:
        """Waits for the next end; an end that was expected before is void."""
        self._expected += 1
        if not self._under_way:
            self._work = 0.0  # keeps its rounding errors from growing
            return
        left = max(self._under_way[0][0] - self._work, 0.0)
        delay = left * len(self._under_way) / self._bandwidth
        event = simpy.Timeout(self._env, delay, self._expected)
        event.callbacks.append(self._end)  # pyright: ignore[reportOptionalMemberAccess]

    def _end(self, event: simpy.Event) -> None:
        if event._value != self._expected:
            return
        self._advance()
        due, _, client, then = heapq.heappop(self._under_way)
        self._work = max(self._work, due)
        self._expect()
        then(client)


class Queue:
    """One server that serves arrivals in their order.

    Args:
        env: The clock.
        service: Draws the service time of a client's arrival.
        then: Called with the client when it has been served.
        busy: Returns how long the server has to do before it serves the next one, by
            how many it has served.
    """

    def __init__(
        self,
        env: simpy.Environment,
        service: Callable[[int], float],
        then: Then,
        busy: Callable[[int], float],
    ) -> None:
        self._env, self._service, self._then = env, service, then
        self._free, self._busy, self._number = env.now, busy, 0

    def arrive(self, client: int) -> None:
        """Queues an arrival."""
        now = self._env.now
        start = max(now, self._free)
        served = start + self._service(client)
        self._number += 1
        self._free = served + self._busy(self._number)
        event = simpy.Timeout(self._env, served - now, client)
        event.callbacks.append(self._served)  # pyright: ignore[reportOptionalMemberAccess]

    def _served(self, event: simpy.Event) -> None:
        self._then(event._value)
