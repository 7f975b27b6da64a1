"""Asynchronous: each client's contribution is applied when it arrives."""

import heapq

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import Asynchronous
from simulator.timeline import Outcome
from simulator.world.cycle import Cycle
from simulator.world.world import World


def play(config: Asynchronous, world: World, recorder: Recorder) -> None:
    """Starts every client; contributions are applied in order of arrival."""
    env, bound = world.env, config.staleness_bound

    def read(client: int) -> None:
        recorder.read(client, env.now)

    def apply(client: int) -> None:
        recorder.commit(env.now, (client,))
        cycle.again(client)

    def judge(client: int) -> None:
        staleness = recorder.version - recorder.read_version(client)
        if bound is not None and staleness > bound:
            recorder.lose(client, Outcome.REJECTED)
            cycle.again(client)
        else:
            apply(client)

    if bound is not None and config.beyond == "wait":
        cycle = _Waiting(bound, world, recorder).cycle
    else:
        cycle = Cycle(world, read, apply if bound is None else judge, recorder.lose)
    cycle.start()


class _Waiting:
    """Arrivals wait until applying them makes no job under way too stale.

    The oldest job of all is never made to wait, so somebody always can go on.
    """

    def __init__(self, bound: int, world: World, recorder: Recorder) -> None:
        self._bound, self._env, self._recorder = bound, world.env, recorder
        self._open: dict[int, int] = {}  # client to version read, jobs not yet arrived
        self._oldest: list[tuple[int, int]] = []  # heap of (version read, client)
        self._waiting: list[tuple[int, int, int]] = []  # heap: version, order, client
        self._arrivals = 0
        self._busy = False
        self.cycle = Cycle(world, self._read, self._arrive, self._lose)

    def _read(self, client: int) -> None:
        recorder = self._recorder
        recorder.read(client, self._env.now)
        self._open[client] = recorder.version
        heapq.heappush(self._oldest, (recorder.version, client))

    def _arrive(self, client: int) -> None:
        recorder = self._recorder
        recorder.arrive(client, self._env.now)
        self._arrivals += 1
        waiting = (recorder.read_version(client), self._arrivals, client)
        heapq.heappush(self._waiting, waiting)
        del self._open[client]
        self._apply()

    def _lose(self, client: int, outcome: Outcome) -> None:
        del self._open[client]
        self._recorder.lose(client, outcome)
        self._apply()

    def _apply(self) -> None:
        if self._busy:  # the loop below goes on for whoever came in between
            return
        self._busy = True
        while self._waiting:
            made = self._recorder.version + 1
            if made - self._oldest_open(made) > self._bound:
                break
            *_, client = heapq.heappop(self._waiting)
            self._recorder.commit(self._env.now, (client,))
            self.cycle.again(client)
        self._busy = False

    def _oldest_open(self, default: int) -> int:
        heap = self._oldest
        while heap and self._open.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else default
