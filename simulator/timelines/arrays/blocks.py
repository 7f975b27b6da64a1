"""Long pieces of a timeline, the row with which it ends, and the chunks of it."""

from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from ...files.timeline import Chunk, Incidents, Jobs, Rows, StopReason
from ...parts.errors import ScenarioError
from ...world.world import World
from ..base import FOREVER, RunTimeline

BLOCK = 65_536
"""Contributions that are worked out at once, where clients are few."""
FIRST = 64
"""Jobs of each client that are worked out first, at most."""
STUCK = 100_000
"""Contributions at one instant after which time stands still."""


class Block(NamedTuple):
    """A piece of a timeline.

    Attributes:
        rows: Its rows.
        jobs: Jobs that ended in it.
        ended: Rows of the block by the end of each job, that with which it ended
            included; in order.
        incidents: Incidents in it, in order.
        stop: Why the run ended with it, if it did.
    """

    rows: Rows
    jobs: Jobs
    ended: Int[np.ndarray, " J"]
    incidents: Incidents
    stop: StopReason | None


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
        self, turns: Int[np.ndarray, " T"], contributions: Int[np.ndarray, " T"]
    ) -> tuple[int, StopReason] | None:
        """Returns the first row that reaches a counted limit, and why; or None.

        Args:
            turns: Turns made by the end of each row.
            contributions: Contributions applied by the end of each row.
        """
        counts = turns, contributions, contributions
        at = [
            int(np.searchsorted(count, limit))
            for count, limit in zip(counts, self._counts, strict=True)
        ]
        row = min(at)
        return None if row == turns.size else (row, self._reasons[at.index(row)])


def chunks(blocks: Iterator[Block], num_rows: int) -> Iterator[Chunk]:
    """Yields chunks of at most `num_rows` rows: equal parts of blocks.

    Of blocks with fewer than half as many rows, several are joined.
    """
    left: Block | None = None
    for block in blocks:
        whole = block if left is None else _joined(left, block)
        size = whole.rows.time.size
        if whole.stop is None and size <= num_rows // 2:
            left = whole
            continue
        part = -(-size // max(1, -(-size // num_rows)))
        while whole.rows.time.size > part:
            yield _first(whole, part)
            whole = _rest(whole, part)
        yield Chunk(whole.rows, whole.jobs, whole.stop, whole.incidents)
        left = None


def _joined(first: Block, second: Block) -> Block:
    def both(one: Any, other: Any) -> Any:
        return type(one)(*map(np.concatenate, zip(one, other, strict=True)))

    return Block(
        both(first.rows, second.rows),
        both(first.jobs, second.jobs),
        np.concatenate([first.ended, second.ended + first.rows.time.size]),
        both(first.incidents, second.incidents),
        second.stop,
    )


def _cuts(block: Block, num_rows: int) -> tuple[int, int]:
    """Returns how many jobs and incidents belong to the first rows."""
    jobs = int(np.searchsorted(block.ended, num_rows, side="right"))
    until = block.rows.time[num_rows - 1]
    return jobs, int(np.searchsorted(block.incidents.time, until, side="right"))


def _first(block: Block, num_rows: int) -> Chunk:
    jobs, incidents = _cuts(block, num_rows)
    return Chunk(
        block.rows.slice(0, num_rows),
        Jobs(*(column[:jobs] for column in block.jobs)),
        None,
        Incidents(*(column[:incidents] for column in block.incidents)),
    )


def _rest(block: Block, num_rows: int) -> Block:
    jobs, incidents = _cuts(block, num_rows)
    return Block(
        block.rows.slice(num_rows, block.rows.time.size),
        Jobs(*(column[jobs:] for column in block.jobs)),
        block.ended[jobs:] - num_rows,
        Incidents(*(column[incidents:] for column in block.incidents)),
        block.stop,
    )


def standstill(commits: int, seconds: float) -> ScenarioError:
    """Returns the error of a world in which time stands still."""
    return ScenarioError(
        f"clients must take time, but {commits} commits happened at {seconds} s; give "
        f"clients.compute or clients.idle a law that is not always 0"
    )
