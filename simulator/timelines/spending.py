"""The end of a run by what its clients take: joules, money, or privacy by commits.

Who acts when does not depend on it, so the moment is found before the run: its world is
played to a moment, all that was taken until then is known from the record, and if it is
too little the world is played to a later one, by the rate so far.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files.timeline import NO_COMMIT, Chunk, Incidents, Jobs, StopReason
from ..parts.errors import ScenarioError
from ..privacy.ledger import CommitCosts
from ..world.expenses import Expenses

if TYPE_CHECKING:
    from .base import RunTimeline

CHUNK = 65_536
"""Rows of a chunk of a world that is played to find the end."""
IN_VAIN = 1_000_000
"""Jobs of all clients that may take nothing before a limit is refused."""
MORE, MOST = 1.1, 8.0
"""By what the next moment is later than one foreseen, and than the last one at most."""


def end(played: "RunTimeline") -> tuple[float, StopReason] | None:
    """Returns when clients have taken what a run may, and of what; None if never.

    Args:
        played: Timeline of a run that ends by it.

    Raises:
        ScenarioError: Clients take nothing, however long they work.
    """
    stop = played.stop
    limits = {"joules": stop.joules, "price": stop.price}
    limits = {spent: limit for spent, limit in limits.items() if limit is not None}
    latest, until = stop.time, 1.0
    while True:
        until = until if latest is None else min(until, latest)
        jobs, incidents, reason, now = _until(free(played, until))
        expenses = Expenses(played.tariffs, jobs, incidents, now)
        flows = {spent: expenses.flow(spent) for spent in limits}
        at = {s: float(flows[s].reaches(limit)) for s, limit in limits.items()}
        first = min(at, key=lambda spent: at[spent])
        if at[first] <= now:
            return at[first], StopReason[first.upper()]
        if reason is not StopReason.TIME or until == latest:
            return None
        shares = [float(flows[s].total[-1]) / limit for s, limit in limits.items()]
        if not max(shares) and jobs.client.size > IN_VAIN:
            raise ScenarioError(
                f"stop.{first} must be reached, but {jobs.client.size:,} jobs took "
                f"nothing; give clients rates of what they do, or another end"
            )
        until *= min(MORE / max(*shares, MORE / MOST), MOST)


def before_exceeded(
    played: "RunTimeline", most: Sequence[int]
) -> tuple[float, StopReason] | None:
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
            return float(np.nextafter(min(over), 0)), StopReason.PRIVACY
        left -= spent
    return None


def ended(
    played: "RunTimeline", at: tuple[float, StopReason], num_rows: int
) -> Iterator[Chunk]:
    """Yields the chunks of a timeline that ends at a moment, with the reason why."""
    for chunk in free(played, at[0]).chunks(num_rows):
        yield chunk._replace(stop=at[1]) if chunk.stop is StopReason.TIME else chunk


def free(played: "RunTimeline", until: float) -> "RunTimeline":
    """Returns a timeline that ends at a moment at the latest, whatever is taken."""
    ends: dict[str, Any] = {"time": until, "joules": None, "price": None}
    return replace(played, stop=played.stop.model_copy(update=ends))


def _until(played: "RunTimeline") -> tuple[Jobs, Incidents, StopReason, float]:
    """Returns jobs and incidents of a timeline, why it ended, and when."""
    chunks = [*played.chunks(CHUNK)]
    jobs = Jobs(*map(np.concatenate, zip(*(c.jobs for c in chunks), strict=True)))
    every = zip(*(c.incidents for c in chunks), strict=True)
    reason, now = chunks[-1].stop, played.stop.time
    assert reason is not None
    assert now is not None
    if reason is not StopReason.TIME:
        now = max(
            (float(c.rows.time[-1]) for c in chunks if c.rows.time.size), default=0.0
        )
    return jobs, Incidents(*map(np.concatenate, every)), reason, now
