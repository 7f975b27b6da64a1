"""Cyclic: clients commit one after the other, always in the same order."""

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import Cyclic
from simulator.streams import Purpose
from simulator.world.world import World


def play(config: Cyclic, world: World, recorder: Recorder) -> None:
    """Starts the turns; all clients have read the first model.

    A client's staleness is its number, from 0, at its first turn, and then K - 1, or K
    where it reads before its own update. The round is the number of its turn.

    Source: MAPA, section 8; decision M-08.
    """
    env, num_clients = world.env, world.num_clients
    reads_first = config.lag == "K"

    def finish(client: int) -> None:
        turn = recorder.version // num_clients
        if reads_first:
            recorder.commit_after_next_read(env.now, client, turn)
        else:
            recorder.commit(env.now, (client,), turn)
            recorder.read(client, env.now)
        step((client + 1) % num_clients)

    for client in range(num_clients):
        recorder.read(client, env.now)
    step = world.stage(Purpose.STEP, world.counted(finish))
    step(0)
