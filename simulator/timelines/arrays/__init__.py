"""Timelines of worlds without feedback, by arrays in place of an event loop.

Where nothing feeds back on who acts when, a client's times are cumulative sums of its
own durations, and a timeline is those of all clients in one order: versions are ranks.

- `rule`: whether a world is free of feedback, or why not.
- `draws`, `losses`, `paths`, `job_arrays`: durations, what becomes of messages, and the
  jobs that each client does one after the other.
- `calendars`: when clients are there that come and go.
- `events`: what happens in which order, also at one instant.
- `arrivals` (with `scans` and `verdicts`), `lock_step`, `faulty_rounds`, `turns`: what
  protocols make of jobs.
- `registers`, `blocks`: where versions are kept; where a run ends, and chunks.

Tables are those of `simulator.timelines.simulated` bit for bit; registers may be
numbered otherwise.
"""

from typing import Any

from ...protocols.free import Arrivals, LockStep, Turns
from ...world.world import World
from ..base import RunTimeline
from .arrivals import ArrivalsPlayer
from .faulty_rounds import FaultyRoundsPlayer
from .lock_step import LockStepPlayer
from .paths import Paths
from .turns import TurnsPlayer


def _lock_step(timeline: RunTimeline, world: World, rule: LockStep) -> Any:
    """Returns the player of rounds that fits a world."""
    assert timeline.clients is not None
    paths = Paths(world, timeline.clients)
    kind = FaultyRoundsPlayer if paths.loses or paths.by_steps else LockStepPlayer
    return kind(timeline, world, rule)


PLAYERS: dict[Any, Any] = {
    Arrivals: ArrivalsPlayer,
    LockStep: _lock_step,
    Turns: TurnsPlayer,
}
"""The player of each rule by which protocols have no feedback."""
