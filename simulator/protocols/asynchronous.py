"""Asynchronous: each client's contribution is applied when it arrives."""

from simpy import Event

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import Asynchronous
from simulator.streams import Purpose
from simulator.world.world import World


def play(config: Asynchronous, world: World, recorder: Recorder) -> None:
    """Starts every client; contributions are applied in order of arrival."""
    del config
    env = world.env

    def begin(event: Event) -> None:
        client = event.value
        recorder.read(client, env.now)
        world.after(Purpose.COMPUTE, client, arrive)

    def arrive(event: Event) -> None:
        client = event.value
        recorder.commit(env.now, (client,))
        world.idle(client, begin)

    for client in range(world.num_clients):
        world.idle(client, begin)
