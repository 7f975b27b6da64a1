"""t-synchronous: the server waits for the first t distinct arrivals."""

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

    def begin(client: int) -> None:
        recorder.read(client, env.now)
        compute(client)

    def arrive(client: int) -> None:
        waiting.append(client)
        if len(waiting) < config.t:
            return
        answered = tuple(waiting)
        waiting.clear()
        recorder.commit(env.now, answered)
        for ready in answered:
            idle(ready)

    idle = world.stage(Purpose.IDLE, begin)
    compute = world.stage(Purpose.COMPUTE, arrive)
    for client in range(world.num_clients):
        idle(client)
