"""t-synchronous: the server waits for the first t distinct arrivals."""

from simpy import Event

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import TSynchronous
from simulator.streams import Purpose
from simulator.world.world import World


def play(config: TSynchronous, world: World, recorder: Recorder) -> None:
    """Starts every client; the others keep working while some wait for the server.

    Source: VAFL, Algorithm 2.
    """
    env = world.env
    waiting: list[int] = []

    def begin(event: Event) -> None:
        client = event.value
        recorder.read(client, env.now)
        world.after(Purpose.COMPUTE, client, arrive)

    def arrive(event: Event) -> None:
        waiting.append(event.value)
        if len(waiting) < config.t:
            return
        answered = tuple(waiting)
        waiting.clear()
        recorder.commit(env.now, answered)
        for client in answered:
            world.idle(client, begin)

    for client in range(world.num_clients):
        world.idle(client, begin)
