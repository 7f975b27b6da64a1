"""Centralised: steps on pooled data, one after the other, without clients."""

from simulator.protocols.recorder import Recorder
from simulator.scenario.protocols import Centralised
from simulator.streams import Purpose
from simulator.world.world import World

POOL = 0
"""The worker that stands for the pooled data."""


def play(config: Centralised, world: World, recorder: Recorder) -> None:
    """Starts the steps."""
    del config
    env = world.env

    def begin() -> None:
        recorder.read(POOL, env.now)
        compute(POOL)

    def finish(worker: int) -> None:
        recorder.commit(env.now, (worker,), recorder.version)
        begin()

    compute = world.stage(Purpose.STEP, world.counted(finish))
    begin()
