"""Bounded delay: asynchronous, with what is too old refreshed before it is used."""

from collections import deque
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from simpy import Event

from ..capabilities import RefreshesEmbeddings
from ..recorders.recorder import Recorder
from ..streams import Purpose
from ..world.cycle import Cycle
from ..world.world import World
from .base import Cadence, Protocol


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

    def described(self, num_clients: int) -> dict[str, Any]:
        waits = "arrivals at the server, while stored embeddings are refreshed"
        return super().described(num_clients) | {"queues": [waits]}

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        return Cadence(width=num_clients, num_registers=in_flight + 1)

    def play(self, world: World, recorder: Recorder) -> None:
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
            if world.message_budget is not None:
                for party in parties:
                    world.message_budget.count(party)
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
