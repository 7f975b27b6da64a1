"""Bounded delay: asynchronous, but values that are too old are refreshed before use."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from simpy import Event

from ...files.timeline import NO_COMMIT, NO_SLOT, Kind
from ...world.cycle import Cycle
from ...world.protocol import Batch, Cadence, Protocol
from ...world.protocol_abilities import RefreshesEmbeddings
from ...world.recorders.recorder import Recorder
from ...world.streams import Purpose
from ...world.world import World


class RefreshRecorder(Recorder):
    """The timeline of one run in which parties upload values again that are too old.

    Args:
        world: World whose clients are the workers.
        width: Most workers of a row.
        batch: Sample ids of a client's job; None where an upload carries all samples.
        num_samples: Number of samples that the batch is chosen from.
    """

    def __init__(
        self, world: World, width: int, batch: Batch | None, num_samples: int
    ) -> None:
        super().__init__(world, width)
        self.batch, self.num_samples = batch, num_samples

    def refresh(
        self,
        request: float,
        arrived: Sequence[float],
        requester: int,
        parties: Sequence[int],
    ) -> None:
        """Lets parties upload the values again that the requester's batch will use.

        Args:
            request: Time of the request, in the clock's unit.
            arrived: Time at which each upload had arrived; the last has just.
            requester: Worker whose batch is about to be used.
            parties: Workers that upload again.
        """
        self._work += (requester, self._job[requester], self.version, NO_SLOT)
        for party, when in zip(parties, arrived, strict=True):
            job = self.new_job(party)
            self._work += (party, job, self.version, NO_SLOT)
            self._job_times += (request, request, when, when, when, when)
            self._jobs += (party, job, 1, self.version, NO_COMMIT, 0, 1)
        self._settle()
        self._add_row(Kind.REFRESH, 1 + len(parties))
        self.num_other_uploads += len(parties)


class Bounded(RefreshesEmbeddings, Protocol):
    """Asynchronous, with stored embeddings older than a bound refreshed before use.

    Source: VAFL, section 4 (bounded delay); decisions V-10.
    """

    kind: Literal["bounded"] = "bounded"
    staleness_bound: Annotated[int, Field(ge=1)]
    """Largest age of a stored embedding that may be used, in commits (inclusive)."""

    @property
    def refresh_bound(self) -> int:
        return self.staleness_bound

    def described(self, num_clients: int) -> dict[str, object]:
        waits = "arrivals at the server, while stored embeddings are refreshed"
        return super().described(num_clients) | {"queues": [waits]}

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        return Cadence(width=num_clients, num_registers=in_flight + 1)

    def recorder(
        self, world: World, width: int, batch: Batch | None, num_samples: int
    ) -> RefreshRecorder:
        return RefreshRecorder(world, width, batch, num_samples)

    def play(self, world: World, recorder: RefreshRecorder) -> None:
        """Starts every client; the server serves one arrival at a time.

        Before an arrival is used, the parties that hold entries of its batch older than
        the bound upload again, all at once; the server waits for the slowest of them,
        one draw of each party's compute time, and other arrivals queue. A refresh makes
        no version (V-10).

        Ages count commits since an entry was uploaded; all entries start at age 1
        (V-09). An upload that carries all samples refreshes all of them
        (`recorder.batch` None).
        """
        env, bound = world.env, self.staleness_bound
        batch = recorder.batch
        num_clients = world.num_clients
        num_samples = recorder.num_samples if batch else 1
        # Version of each party's embedding of each sample; -1 where it never sent one.
        stamp = np.full((num_samples, num_clients), -1, np.int64)
        queue: deque[int] = deque()
        busy = False

        def arrive(client: int) -> None:
            nonlocal busy
            recorder.arrive(client)
            queue.append(client)
            if not busy:
                busy = True
                serve(None)

        def serve(_: Event | None) -> None:
            client = queue[0]
            late = np.any(recorder.version - stamp[ids(client)] > bound, axis=0)
            late[client] = False  # its own embedding has just arrived
            parties = np.flatnonzero(late).tolist()
            if parties:
                refresh(client, parties)
            else:
                apply()

        def refresh(client: int, parties: list[int]) -> None:
            asked = env.now
            for party in parties:
                world.budget.count(party)
            waits = [world.draw(Purpose.REFRESH, party) for party in parties]

            def refreshed(_: Event) -> None:
                arrived = [asked + wait for wait in waits]
                recorder.refresh(asked, arrived, client, parties)
                entries = np.ix_(ids(client), np.asarray(parties))
                # Only stale embeddings are sent again; the others keep their age.
                late = recorder.version - stamp[entries] > bound
                stamp[entries] = np.where(late, recorder.version, stamp[entries])
                apply()

            call(max(waits), refreshed)

        def apply() -> None:
            nonlocal busy
            client = queue.popleft()
            stamp[ids(client), client] = recorder.version
            recorder.commit((client,))
            cycle.again(client)
            busy = bool(queue)
            if busy:  # an event of its own, so that an event commits at most once
                call(0, serve)

        def call(delay: float, then: Callable[[Event], None]) -> None:
            env.timeout(delay).callbacks.append(then)

        def ids(client: int) -> np.ndarray:
            if batch is None:
                return np.zeros(1, np.int64)
            return np.unique(batch(client, recorder.current_job(client)))

        cycle = Cycle(world, recorder.read, arrive, recorder.lose)
        cycle.start()
