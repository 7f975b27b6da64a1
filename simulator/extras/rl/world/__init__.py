"""Worlds of samples, played: slots, a queue and a trainer.

`options` are those of a scenario. `draws` has the random numbers, `buffer` the queue;
`slots` and `events` play a world event by event, `arrays` one in which nothing feeds
back on generation, to the same `record`. `measures` takes staleness and waste from it.
"""

from .arrays import RolloutArrays, is_free
from .draws import RolloutDraws
from .events import RolloutEvents
from .options import RolloutOptions
from .record import Rollouts, SampleOutcome

__all__ = [
    "RolloutDraws",
    "RolloutOptions",
    "Rollouts",
    "SampleOutcome",
    "is_free",
    "play",
]


def play(world: RolloutOptions, seed: int, player: str = "fastest") -> Rollouts:
    """Plays a world of samples.

    Args:
        world: Its options, checked.
        seed: Seed of everything random, >= 0.
        player: `events` plays every world event by event; `fastest` by arrays, where
            nothing feeds back on generation.

    Raises:
        ScenarioError: a law gives no duration, or the world stands still.
    """
    draws = RolloutDraws(world, seed)
    if player == "fastest" and is_free(world):
        return RolloutArrays(world, draws).play()
    return RolloutEvents(world, draws).play()
