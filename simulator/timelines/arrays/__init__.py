"""Timelines of worlds without feedback, by arrays in place of an event loop.

Where nothing feeds back on who acts when, a client's times are cumulative sums of its
own durations, and a timeline is those of all clients in one order: versions are ranks.

- `rule`: whether a world is free of feedback, or why not.
- `draws`, `paths`, `job_arrays`: durations, what becomes of messages, and the
  jobs that each client does one after the other.
- `events`: what happens in which order, also at one instant.
- `arrivals` (with `verdicts`), `lock_step`, `turns`: what protocols make of
  jobs.
- `registers`, `blocks`: where versions are kept; where a run ends, and chunks.

Tables are those of `simulator.timelines.simulated` bit for bit; registers may be
numbered otherwise.
"""

from typing import Any

from ...world.protocol import Arrivals, LockStep, Turns
from .arrivals import ArrivalsPlayer
from .lock_step import LockStepPlayer
from .turns import TurnsPlayer

PLAYERS: dict[Any, Any] = {
    Arrivals: ArrivalsPlayer,
    LockStep: LockStepPlayer,
    Turns: TurnsPlayer,
}
"""The player of each rule by which protocols have no feedback."""
