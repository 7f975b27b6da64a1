"""Bounded delay: asynchronous, with what is too old refreshed before it is used."""

import numpy as np
from simpy import Event

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import Bounded
from simulator.streams import Purpose
from simulator.world.world import World


def play(config: Bounded, world: World, recorder: Recorder) -> None:
    """Starts every client; the server serves one arrival at a time.

    Before an arrival is used, the parties that hold entries of its batch older than the
    bound upload again, all at once; the server waits for the slowest of them, one draw
    of each party's compute time, and other arrivals queue. A refresh makes no version (V-10).

    Ages count commits since an entry was uploaded; all entries start at age 1 (V-09).
    An upload that carries all samples refreshes all of them (`recorder.batch` None).
    """
    env, bound = world.env, config.staleness_bound
    batch = recorder.batch
    num_clients = world.num_clients
    num_samples = recorder.num_samples if batch else 1
    stamp = np.full((num_samples, num_clients), -1, np.int64)
    queue: list[int] = []
    busy = False

    def begin(event: Event) -> None:
        client = event.value
        recorder.read(client, env.now)
        world.after(Purpose.COMPUTE, client, arrive)

    def arrive(event: Event) -> None:
        queue.append(event.value)
        if not busy:
            serve(event)

    def serve(event: Event) -> None:
        nonlocal busy
        del event
        busy = True
        client = queue[0]
        ids = _ids(client)
        late = (recorder.version - stamp[ids] > bound).any(axis=0)
        late[client] = False
        parties = np.flatnonzero(late).tolist()
        if not parties:
            apply()
            return
        asked = env.now
        waits = [world.duration(Purpose.REFRESH, party) for party in parties]

        def refreshed(event: Event) -> None:
            del event
            arrived = [asked + wait for wait in waits]
            recorder.refresh(asked, arrived, env.now, client, parties)
            entries = np.ix_(ids, parties)
            old = recorder.version - stamp[entries] > bound
            stamp[entries] = np.where(old, recorder.version, stamp[entries])
            apply()

        env.timeout(max(waits)).callbacks.append(  # pyright: ignore
            refreshed
        )

    def apply() -> None:
        nonlocal busy
        client = queue.pop(0)
        stamp[_ids(client), client] = recorder.version
        recorder.commit(env.now, (client,))
        world.idle(client, begin)
        busy = bool(queue)
        if busy:  # an event of its own, so that every commit is one
            env.timeout(0).callbacks.append(serve)  # pyright: ignore

    def _ids(client: int) -> np.ndarray:
        if batch is None:
            return np.zeros(1, np.int64)
        return np.unique(batch(client, recorder.current_job(client)))

    for client in range(num_clients):
        world.idle(client, begin)
