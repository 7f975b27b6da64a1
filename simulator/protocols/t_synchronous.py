"""t-synchronous: the server waits for the first t distinct arrivals."""

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import TSynchronous
from simulator.world.cycle import Cycle
from simulator.world.world import World


def play(config: TSynchronous, world: World, recorder: Recorder) -> None:
    """Starts every client; the others keep working while some wait for the server.

    Source: VAFL, Algorithm 2.
    """
    env = world.env
    waiting: list[int] = []

    def read(client: int) -> None:
        recorder.read(client, env.now)

    def arrive(client: int) -> None:
        recorder.arrive(client, env.now)
        waiting.append(client)
        if len(waiting) < config.t:
            return
        answered = tuple(waiting)
        waiting.clear()
        recorder.commit(env.now, answered)
        for ready in answered:
            cycle.again(ready)

    cycle = Cycle(world, read, arrive, recorder.lose)
    cycle.start()
