"""Buffered: contributions gather in the server's buffer and are applied together."""

from math import ceil

import simpy
from simpy.events import NORMAL, EventPriority

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import Buffered
from simulator.world.cycle import Cycle
from simulator.world.world import World

AFTER_ARRIVALS = EventPriority(NORMAL + 1)
"""Priority of a window's end: what arrives at that instant is still in it."""


def play(config: Buffered, world: World, recorder: Recorder) -> None:
    """Starts every client; none waits for the buffer.

    The client whose arrival fills the buffer reads the new version. Windows follow one
    another from time 0; one in which nothing arrived makes no version.

    Source: Nguyen et al. (2022), Algorithm 1.
    """
    env, size, window = world.env, config.size, config.window

    def read(client: int) -> None:
        recorder.read(client, env.now)

    def arrive(client: int) -> None:
        if recorder.num_buffered + 1 == size:
            recorder.commit(env.now, (client,))
        else:
            if window is not None and not recorder.num_buffered:
                end_window(window)
            recorder.contribute(env.now, client)
        cycle.again(client)

    def end_window(length: float) -> None:
        event = simpy.Event(env)
        event.callbacks.append(lambda _: recorder.commit(env.now, ()))  # pyright: ignore[reportOptionalMemberAccess]
        event._ok, event._value = True, None
        left = max(ceil(env.now / length) * length - env.now, 0)
        env.schedule(event, priority=AFTER_ARRIVALS, delay=left)

    cycle = Cycle(world, read, arrive, recorder.lose)
    cycle.start()
