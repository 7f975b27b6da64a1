"""The row with which a run ends."""

from math import inf
from typing import Any

from jaxtyping import Int
from numpy import ndarray, searchsorted

from ...timeline import StopReason
from ...world.world import World
from ..base import FOREVER, RunTimeline


class Limits:
    """The ends of a run.

    Args:
        timeline: Timeline of the run, without messages but those of contributions.
        world: Its world.
    """

    def __init__(self, timeline: RunTimeline, world: World) -> None:
        stop = timeline.stop.time
        self.time: Any = inf if stop is None else world.clock(stop)
        """Time of the end in the clock's unit, if there is one."""
        (by_turns, self.turns), (by, most) = timeline.limits
        each, _, spendable = timeline.weights
        paid = -(-spendable // each) if each else FOREVER
        self._reasons = by_turns, by, StopReason.BYTES
        self._counts = self.turns, most, paid
        self.contributions = min(most, paid)

    def first(
        self, turns: Int[ndarray, " T"], contributions: Int[ndarray, " T"]
    ) -> tuple[int, StopReason] | None:
        """Returns the first row that reaches a counted limit, and why; or None.

        Args:
            turns: Turns made by the end of each row.
            contributions: Contributions applied by the end of each row.
        """
        counts = turns, contributions, contributions
        at = [
            int(searchsorted(count, limit))
            for count, limit in zip(counts, self._counts, strict=True)
        ]
        row = min(at)
        return None if row == turns.size else (row, self._reasons[at.index(row)])
