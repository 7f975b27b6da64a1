"""Worlds of samples, played: slots, a queue and a trainer.

`options` are those of a scenario. `draws` has the random numbers, `buffer` the queue;
`slots` and `events` play a world to its `record`, from which `measures` takes
staleness and waste.
"""

from .draws import RolloutDraws
from .events import RolloutEvents
from .options import RolloutOptions
from .record import Rollouts, SampleOutcome

__all__ = ["RolloutDraws", "RolloutOptions", "Rollouts", "SampleOutcome", "play"]


def play(world: RolloutOptions, seed: int) -> Rollouts:
    """Plays a world of samples.

    Raises:
        ScenarioError: a law gives no duration, or the world does not advance.
    """
    return RolloutEvents(world, RolloutDraws(world, seed)).play()
