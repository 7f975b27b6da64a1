"""Synchronous: every client in every round, which lasts as long as its slowest."""

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import Synchronous
from simulator.streams import Purpose
from simulator.world.world import World


def play(config: Synchronous, world: World, recorder: Recorder) -> None:
    """Starts round after round; a row names all clients in their own order.

    Source: VAFL, section 4 of its specification; V-29.
    """
    del config
    env = world.env
    everyone = tuple(range(world.num_clients))
    missing, round_ = 0, 0

    def begin(client: int) -> None:
        recorder.read(client, env.now)
        compute(client)

    def arrive(client: int) -> None:
        nonlocal missing, round_
        del client
        missing -= 1
        if not missing:
            recorder.commit(env.now, everyone, round_)
            round_ += 1
            start()

    def start() -> None:
        nonlocal missing
        missing = world.num_clients
        for client in everyone:
            idle(client)

    idle = world.stage(Purpose.IDLE, begin)
    compute = world.stage(Purpose.COMPUTE, arrive)
    start()
