"""What is written down of jobs that have ended, or were under way at the end."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, Shaped

from ...files.timeline import NO_COMMIT, Incident, Incidents, Jobs, Outcome
from ...world.faults import Losses
from ...world.world import World
from .job_arrays import JobArrays


def ended(
    world: World,
    work: JobArrays,
    outcome: Int[np.ndarray, " J"],
    commit: Int[np.ndarray, " J"],
    applied: Shaped[np.ndarray, " J"] | None,
) -> Jobs:
    """Returns jobs that have ended.

    Args:
        world: Their world.
        work: The jobs.
        outcome: What became of each.
        commit: Number of the commit that applied it, or `NO_COMMIT`.
        applied: Time of that commit, in the clock's unit; None where there is none.
    """
    end = world.seconds(work.end)
    read, started, computed = _moments(world, work, end)
    sends = 1 if work.sends is None else work.sends
    arrived = np.where(outcome == Outcome.LOST, np.nan, end)
    nan = np.full(end.size, np.nan)
    at = (
        nan
        if applied is None
        else np.where(commit == NO_COMMIT, nan, world.seconds(applied))
    )
    times = read, started, computed, computed, arrived, at
    return _jobs(work, times, commit, outcome, sends)


def under_way(
    world: World,
    work: JobArrays,
    now: float,
    arrived: Bool[np.ndarray, " J"] | None = None,
) -> Jobs:
    """Returns jobs that had read when the run ended, and had not ended.

    Args:
        world: Their world.
        work: The jobs.
        now: Time of the end, in the clock's unit.
        arrived: Whether each has arrived, and waits for others; None where none waits.
    """
    nan = np.full(work.client.size, np.nan)
    commit = np.full(work.client.size, NO_COMMIT)
    read = world.seconds(work.read)
    if work.started is None or work.computed is None:
        there = np.zeros(nan.size, bool) if arrived is None else arrived
        end = np.where(there, world.seconds(work.end), np.nan)
        times = read, read, end, end, end, nan
        return _jobs(work, times, commit, int(Outcome.IN_FLIGHT), there)
    moments = (work.started, work.computed, work.computed, work.end)
    computes = work.computed <= now
    arrives = computes & (work.end <= now)
    seen = (work.started <= now, computes, computes, arrives)
    times = (
        np.where(is_over, world.seconds(moment), np.nan)
        for moment, is_over in zip(moments, seen, strict=True)
    )
    sends = computes.astype(np.int64)
    losses = world.feature(Losses)
    if work.sends is not None and losses is not None:
        timeout = losses.timeouts[work.client]
        again = np.flatnonzero(computes & (timeout > 0))
        repeats = ((now - work.computed[again]) / timeout[again]).astype(np.int64)
        sends[again] = np.minimum(work.sends[again], 1 + repeats)
    return _jobs(work, (read, *times, nan), commit, int(Outcome.IN_FLIGHT), sends)


Notes = tuple[np.ndarray, ...]
"""Columns of incidents: virtual seconds, clients, what, messages."""


def ended_badly(
    world: World, work: JobArrays, accepted: Bool[np.ndarray, " J"]
) -> Notes:
    """Returns the incidents with which jobs have ended that were not applied."""
    fate = np.zeros(accepted.size, np.int64) if work.outcome is None else work.outcome
    rejected = work.at(~accepted & (fate == Outcome.APPLIED))
    lost = work.at(fate == Outcome.LOST)
    parts = (
        _noted(world, rejected, rejected.end, Incident.REJECTED, 1),
        _noted(world, lost, lost.end, Incident.GAVE_UP, lost.sends),
    )
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def repeated(world: World, work: JobArrays) -> Notes:
    """Returns the incidents of arrivals that were sent again, or came twice."""
    assert work.sends is not None
    assert work.twice is not None
    arrives = np.asarray(work.outcome) == Outcome.APPLIED
    repeats = work.sends - work.twice - 1
    resent, twice = arrives & (repeats > 0), arrives & work.twice
    parts = (
        _noted(world, own, own.end, what, number)
        for own, what, number in (
            (work.at(resent), Incident.RESENT, repeats[resent]),
            (work.at(twice), Incident.DUPLICATE, 1),
        )
    )
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def in_order_of_time(notes: Sequence[Notes]) -> Incidents:
    """Returns incidents of several kinds, in order of time."""
    time, client, what, number = map(np.concatenate, zip(*notes, strict=True))
    order = np.lexsort((number, what, client, time))
    whole = (column[order].astype(np.int32) for column in (client, what, number))
    return Incidents(time[order], *whole)


def _noted(
    world: World, work: JobArrays, time: Any, what: Incident, number: Any
) -> tuple[np.ndarray, ...]:
    """Returns columns of incidents."""
    size = work.client.size
    return (
        world.seconds(time),
        work.client,
        np.full(size, int(what)),
        np.broadcast_to(1 if number is None else number, size),
    )


def _moments(world: World, work: JobArrays, end: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns when jobs read, began to compute and had computed, virtual seconds.

    Where nothing comes between, a job begins at its read and has computed at its end.
    """
    read = world.seconds(work.read)
    if work.started is None or work.computed is None:
        return read, read, end
    return read, world.seconds(work.started), world.seconds(work.computed)


def _jobs(
    work: JobArrays,
    times: Sequence[np.ndarray],
    commit: Int[np.ndarray, " J"],
    outcome: Any,
    uploads: Any,
) -> Jobs:
    read, started, computed, sent, arrived, applied = times

    def whole(values: Any) -> np.ndarray:
        return np.broadcast_to(values, work.client.shape).astype(np.int32)

    return Jobs(
        whole(work.client),
        whole(work.job),
        np.zeros(work.client.size, np.int32),
        read,
        started,
        computed,
        sent,
        arrived,
        applied,
        work.read_version,
        commit,
        whole(outcome),
        whole(uploads),
    )
