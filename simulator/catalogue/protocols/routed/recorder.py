"""The timeline of tasks that have read the model before their client begins."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from ....files.timeline import Outcome
from ....world.recorders.arrays import NEVER
from ....world.recorders.recorder import Reading, Recorder
from ....world.world import World


class QueueRecorder(Recorder):
    """The timeline of one run in which clients have several jobs at a time.

    Args:
        world: World whose clients are the workers.
        width: Most workers of a row.
    """

    def __init__(self, world: World, width: int) -> None:
        super().__init__(world, width)
        self._waiting = [deque[Reading]() for _ in range(world.num_clients)]
        self._started: list[Any] = [None] * world.num_clients

    def send(self, client: int) -> None:
        """Lets a task of a client read the current version, and wait."""
        before, started = self.current(client), self._started[client]
        self.read(client)
        self._waiting[client].append(self.current(client))
        self._set(client, before)
        self._started[client] = started

    def begin(self, client: int) -> None:
        """Makes the task that has waited longest the client's current job."""
        self._set(client, self._waiting[client].popleft())
        self._started[client] = self._now

    def read(self, worker: int) -> int:
        self._started[worker] = None
        return super().read(worker)

    def commit(self, workers: Sequence[int], round_: int = 0) -> None:
        time = self._now
        for worker in workers:
            if self._timing[worker] is None and self._started[worker] is not None:
                self._timing[worker] = (self._started[worker], time, time, time, 1)
        super().commit(workers, round_)

    def _so_far(self, worker: int) -> tuple[Any, Any, Any, Any, int]:
        if self._timing[worker] is None and self._started[worker] is not None:
            return self._started[worker], NEVER, NEVER, NEVER, 0
        return super()._so_far(worker)

    def _add_unfinished(self) -> None:
        super()._add_unfinished()
        for client, tasks in enumerate(self._waiting):
            for task in tasks:
                job = client, task.job, task.read_version
                times = (task.read_time, *(NEVER,) * 5)
                self._add_job(*job, times, Outcome.IN_FLIGHT, 0)
