"""Centralised: steps on pooled data, one after the other, without clients."""

from simpy import Event

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import Centralised
from simulator.streams import Purpose
from simulator.world.world import World


def play(config: Centralised, world: World, recorder: Recorder) -> None:
    """Starts the steps; their rows name worker 0, which stands for the pool."""
    del config
    env = world.env

    def begin() -> None:
        recorder.read(0, env.now)
        world.after(Purpose.STEP, 0, finish)

    def finish(event: Event) -> None:
        del event
        recorder.commit(env.now, (0,), recorder.version)
        begin()

    begin()
