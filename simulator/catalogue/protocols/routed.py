"""Routed: tasks are sent to clients, and wait in their queues."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from ...files.timeline import Outcome
from ...parts.base import LocatedError
from ...parts.expressions import Quantity, per_client
from ...world.clients import Clients, Server
from ...world.cycle import Cycle
from ...world.protocol import Cadence, Protocol, Traits
from ...world.protocol_abilities import DrawsClients
from ...world.recorders.arrays import NEVER
from ...world.recorders.recorder import Moment, Reading, Recorder
from ...world.streams import Purpose, Streams
from ...world.world import Timing, World


class QueueRecorder(Recorder):
    """The timeline of one run in which clients have several jobs at a time."""

    def __init__(self, world: World, width: int) -> None:
        super().__init__(world, width)
        self._waiting = [deque[Reading]() for _ in range(world.num_clients)]
        self._started: list[Moment] = [NEVER] * world.num_clients

    def send(self, client: int) -> None:
        """Lets a task of a client read the current version, and wait."""
        before, started = self.current(client), self._started[client]
        self._read_time[client] = NEVER  # one job waits for the other
        self.read(client)
        self._waiting[client].append(self.current(client))
        self._set(client, before)
        self._started[client] = started

    def begin(self, client: int) -> None:
        """Makes the task that has waited longest the client's current job."""
        self._set(client, self._waiting[client].popleft())
        self._started[client] = self._now

    def read(self, worker: int) -> int:
        self._started[worker] = NEVER
        return super().read(worker)

    def commit(self, workers: Sequence[int], round_: int = 0) -> None:
        time = self._now
        for worker in workers:
            if self._timing[worker] is None and self._started[worker] != NEVER:
                self._timing[worker] = (self._started[worker], time, time, time, 1)
        super().commit(workers, round_)

    def _so_far(self, worker: int) -> Timing:
        if self._timing[worker] is None and self._started[worker] != NEVER:
            return self._started[worker], NEVER, NEVER, NEVER, 0
        return super()._so_far(worker)

    def _add_unfinished(self) -> None:
        super()._add_unfinished()
        for client, tasks in enumerate(self._waiting):
            for task in tasks:
                job = client, task.job, task.read_version
                times = (task.read_time, *(NEVER,) * 5)
                self._add_job(*job, times, Outcome.IN_FLIGHT, 0)


BLOCK = 256
"""Routes that are drawn at a time."""


class Routed(DrawsClients, Protocol):
    """A fixed number of tasks is in flight; each waits in the queue of its client.

    A client does its tasks in the order of their coming, one at a time. When a task is
    done its contribution is applied, and another task is sent out with the new model.

    Source: Leconte et al., Queueing Dynamics of Asynchronous Federated Learning (2024),
    Algorithm 1; `route`: Islamov, Safaryan and Alistarh, AsGrad (2023), section 3.
    """

    kind: Literal["routed"] = "routed"
    records: ClassVar[type[Recorder]] = QueueRecorder
    traits: ClassVar[Traits] = Traits(everyone_works=True)
    tasks: Annotated[int, Field(ge=1)]
    """Tasks in flight, waiting ones included."""
    route: Literal["random", "shuffled", "back"] = "random"
    """Client of the next task: drawn by `weights`; the next one of a random order of
    all, a new one after each pass; or the client whose task is done."""
    weights: Quantity = 1
    """`random`: chances of the clients, up to a common factor."""
    reads: Literal["routing", "service"] = "routing"
    """When a task reads the model: when it is sent out, or when its client begins."""

    def described(self, num_clients: int) -> dict[str, object]:
        early = self.reads == "routing"
        known = {"closed_network": {"reads_early": early}}
        return super().described(num_clients) | {
            "entities": f"{num_clients} clients and {self.tasks} tasks in flight, of "
            f"which a client does one after the other",
            "queues": ["tasks at each client, first in, first out"],
            "queues_jobs": early,
            "closed_forms": known if self.route == "random" else {},
        }

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        return Cadence(width=1, num_registers=self.tasks + 1)

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        self.shares(n)

    def chances(self, num_clients: int) -> Sequence[float] | None:
        if self.route == "back":
            return None
        even = [1 / num_clients] * num_clients
        return self.shares(num_clients).tolist() if self.route == "random" else even

    def shares(self, num_clients: int) -> Float[np.ndarray, " K"]:
        """Returns the chance of each client, p_i.

        Raises:
            LocatedError: They are negative or all zero.
        """
        weights = per_client(self.weights, num_clients, "protocol.weights")
        found = np.array([float(weight) for weight in weights])
        if not (np.isfinite(found).all() and found.min() >= 0 and found.sum() > 0):
            raise LocatedError(
                f"protocol.weights must be >= 0 and not all 0, got {found.min():g}; "
                "change them",
            )
        return found / found.sum()

    def play(self, world: World, recorder: QueueRecorder) -> None:
        """Sends out the first tasks at time 0, in order of their numbers.

        A finished task is applied first; then the next task is sent out and put in its
        queue, and clients with a task begin. Another task replaces a lost one.
        """
        routes = None
        if self.route != "back":
            shares = self.shares(world.num_clients)
            shuffled = self.route == "shuffled"
            routes = routed(shares, world.streams, shuffled=shuffled)
        early = self.reads == "routing"
        Tasks(self.tasks, routes, world, recorder, early=early).start()


def routed(
    shares: Float[np.ndarray, " K"], streams: Streams, *, shuffled: bool
) -> Iterator[int]:
    """Yields the clients that tasks are sent to, one after the other, without end.

    Args:
        shares: Chance of each client.
        streams: Random streams of the run.
        shuffled: Whether they come in random orders of all, whatever their chances.
    """
    bounds = np.cumsum(shares)
    for number in count():
        if shuffled:
            drawn = streams.at(Purpose.ROUTE, 0, number).permutation(shares.size)
        else:
            uniform = streams.uniforms(Purpose.ROUTE, 0, number * BLOCK, BLOCK)
            drawn = np.searchsorted(bounds, uniform * bounds[-1], side="right")
            drawn = np.minimum(drawn, shares.size - 1)
        yield from drawn.tolist()


class Tasks:
    """A number of tasks, which wait in their clients' queues.

    Args:
        number: Tasks in flight.
        routes: Their clients; None where the next task is of the same one.
        world: World that is simulated.
        recorder: Recorder of the timeline.
        early: Whether a task reads the model when it is sent out.
    """

    def __init__(
        self,
        number: int,
        routes: Iterator[int] | None,
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
        """Sends out the first tasks, and lets clients fetch theirs."""
        for task in range(self._number):
            self._send(self._next(task % len(self._queued)))
        self._cycle.start()

    def _next(self, client: int) -> int:
        return client if self._routes is None else next(self._routes)

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
        chosen = self._next(client)
        self._send(chosen)
        if chosen in self._idle:
            self._idle.remove(chosen)
            self._cycle.resume(chosen)
