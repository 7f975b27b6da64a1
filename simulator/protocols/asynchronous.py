"""Asynchronous: each client's contribution is applied when it arrives."""

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import Asynchronous
from simulator.streams import Purpose
from simulator.world.world import World


def play(config: Asynchronous, world: World, recorder: Recorder) -> None:
    """Starts every client; contributions are applied in order of arrival."""
    del config
    env = world.env

    def begin(client: int) -> None:
        recorder.read(client, env.now)
        compute(client)

    def arrive(client: int) -> None:
        recorder.commit(env.now, (client,))
        idle(client)

    idle = world.stage(Purpose.IDLE, begin)
    compute = world.stage(Purpose.COMPUTE, arrive)
    for client in range(world.num_clients):
        idle(client)
