"""The end of a run by privacy that its commits spend.

Who acts when does not depend on it, so the moment is found before the run: its world is
played until a commit that a client's privacy does not allow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..files.timeline import NO_COMMIT, Chunk, StopReason
from ..privacy.ledger import CommitCosts

if TYPE_CHECKING:
    from .base import RunTimeline

CHUNK = 65_536
"""Rows of a chunk of a world that is played to find the end."""


def before_exceeded(played: "RunTimeline", most: Sequence[int]) -> float | None:
    """Returns a moment just before a commit that a client's privacy does not allow.

    Args:
        played: Timeline of a run that other ends limit.
        most: What the messages of each client in commits may count (`CommitCosts`).

    Returns:
        None if there is no such commit.
    """
    costs, left = CommitCosts(played.num_clients), np.array(most, np.int64)
    for chunk in played.chunks(CHUNK):
        jobs = chunk.jobs
        applied = jobs.commit != NO_COMMIT
        client, commit = jobs.client[applied], jobs.commit[applied]
        counts = costs.add(client, commit)
        spent = np.bincount(client, counts, left.size).astype(np.int64)
        over = []
        for each in np.flatnonzero(spent > left):
            mine = np.flatnonzero(client == each)
            mine = mine[np.argsort(commit[mine], kind="stable")]
            first = np.argmax(np.cumsum(counts[mine]) > left[each])
            over.append(jobs.applied_time[applied][mine[first]])
        if over:
            return float(np.nextafter(min(over), 0))
        left -= spent
    return None


def ended(played: "RunTimeline", at: float, num_rows: int) -> Iterator[Chunk]:
    """Yields the chunks of a timeline that privacy ends at a moment."""
    stop = played.stop.model_copy(update={"time": at})
    for chunk in replace(played, stop=stop).chunks(num_rows):
        timed = chunk.stop is StopReason.TIME
        yield chunk._replace(stop=StopReason.PRIVACY) if timed else chunk
