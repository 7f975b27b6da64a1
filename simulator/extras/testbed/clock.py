"""A clock that follows the real one, for the events of a protocol.

A protocol is played as in a simulation, by the same code. But its events happen when
their time has come, and in between what clients say happens when they say it.
"""

import time
from collections import deque
from collections.abc import Callable
from heapq import heappop
from math import inf

import simpy
from simpy.core import EmptySchedule

from .fleet import Channels, Received
from .wire import Envelope

LOOK_S = 0.2
"""Most real seconds after which is looked whether the run was interrupted."""


class Interrupted(Exception):  # noqa: N818
    """The user has ended the run."""


class RealTime(simpy.Environment):
    """Events in real time.

    Args:
        lines: Conversations with the clients.
        scale: Real seconds of a virtual one.

    Attributes:
        hear: Called with a client and its message.
        busy: Says whether a message may still come.
        after: Called after everything that has happened.
        interrupted: Says whether the user has ended the run.
    """

    def __init__(self, lines: Channels, scale: float) -> None:
        super().__init__(initial_time=0)
        self.hear: Callable[[int, Envelope], None] = lambda client, message: None
        self.busy: Callable[[], bool] = lambda: True
        self.after: Callable[[], None] = lambda: None
        self.interrupted: Callable[[], bool] = lambda: False
        self._lines, self._scale = lines, scale
        self._received: deque[tuple[int, Envelope]] = deque()
        self._origin = time.monotonic()

    def begin(self) -> None:
        """Lets the time begin."""
        self._origin = time.monotonic()

    def virtual(self, moment: float) -> float:
        """Returns the virtual time of a moment of the real, monotonic clock."""
        return (moment - self._origin) / self._scale

    def add(self, received: Received) -> None:
        """Adds messages that have arrived."""
        self._received += received

    def step(self) -> None:
        """Waits for what happens next, and lets it happen.

        Raises:
            EmptySchedule: Nothing can happen any more.
            Interrupted: The user has ended the run.
        """
        while True:
            if self.interrupted():
                raise Interrupted
            now = max(self.virtual(time.monotonic()), self._now)
            due = self._queue[0][0] if self._queue else inf
            if due <= now or self._received:
                break
            if due == inf and not self.busy():
                raise EmptySchedule
            self.add(self._lines.poll(min((due - now) * self._scale, LOOK_S)))
        self._now = now
        if due <= now:
            event = heappop(self._queue)[3]
            callbacks, event.callbacks = event.callbacks, None  # pyright: ignore
            for callback in callbacks:
                callback(event)
        else:
            self.hear(*self._received.popleft())
        self.after()
