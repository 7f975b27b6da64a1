"""Tasks and their routes, played on SimPy."""

from typing import Literal

import numpy as np
from jaxtyping import Float

from ...streams import Purpose, Streams
from ...timeline import Outcome
from ...world.cycle import Cycle
from ...world.world import World
from .recorder import QueueRecorder

BLOCK = 256
"""Routes that are drawn at a time."""


class Routes:
    """The clients that tasks are sent to, one after the other.

    Args:
        kind: Rule.
        shares: Chance of each client.
        streams: Random streams of the run.
    """

    def __init__(
        self,
        kind: Literal["random", "shuffled", "back"],
        shares: Float[np.ndarray, " K"],
        streams: Streams,
    ) -> None:
        self._kind, self._streams = kind, streams
        self._bounds = np.cumsum(shares)
        self._ahead: list[int] = []
        self._drawn = 0

    def first(self, number: int) -> int:
        """Returns the client of one of the first tasks, by its number."""
        if self._kind == "back":
            return number % self._bounds.size
        return self._next()

    def after(self, client: int) -> int:
        """Returns the client of the task that follows one of a client."""
        return client if self._kind == "back" else self._next()

    def _next(self) -> int:
        if not self._ahead:
            self._ahead = self._draw()[::-1]
        return self._ahead.pop()

    def _draw(self) -> list[int]:
        number, self._drawn = self._drawn, self._drawn + 1
        n = self._bounds.size
        if self._kind == "shuffled":
            return self._streams.at(Purpose.ROUTE, 0, number).permutation(n).tolist()
        uniform = self._streams.uniforms(Purpose.ROUTE, 0, number * BLOCK, BLOCK)
        found = np.searchsorted(self._bounds, uniform * self._bounds[-1], side="right")
        return np.minimum(found, n - 1).tolist()


class Tasks:
    """A number of tasks, which wait in their clients' queues.

    Args:
        number: Tasks in flight.
        routes: Their clients.
        world: World that is simulated.
        recorder: Recorder of the timeline.
        early: Whether a task reads the model when it is sent out.
    """

    def __init__(
        self,
        number: int,
        routes: Routes,
        world: World,
        recorder: QueueRecorder,
        *,
        early: bool,
    ) -> None:
        self._number, self._routes = number, routes
        self._recorder, self._early = recorder, early
        self._queued = [0] * world.num_clients
        self._idle: set[int] = set()
        arrive, lose = self._arrive, self._lose
        self._cycle = Cycle(world, self._begin, arrive, lose, admit=self._admit)

    def start(self) -> None:
        """Sends out the first tasks, and lets clients ask for theirs."""
        for task in range(self._number):
            self._send(self._routes.first(task))
        self._cycle.start()

    def _send(self, client: int) -> None:
        self._queued[client] += 1
        if self._early:
            self._recorder.send(client)

    def _admit(self, client: int) -> bool:
        if self._queued[client]:
            return True
        self._idle.add(client)
        return False

    def _begin(self, client: int) -> None:
        self._queued[client] -= 1
        if self._early:
            self._recorder.begin(client)
        else:
            self._recorder.read(client)

    def _arrive(self, client: int) -> None:
        self._recorder.commit((client,))
        self._follow(client)
        self._cycle.again(client)

    def _lose(self, client: int, outcome: Outcome) -> None:
        self._recorder.lose(client, outcome)
        self._follow(client)

    def _follow(self, client: int) -> None:
        """Sends out the next task, and wakes its client if that idles."""
        chosen = self._routes.after(client)
        self._send(chosen)
        if chosen in self._idle:
            self._idle.remove(chosen)
            self._cycle.resume(chosen)
