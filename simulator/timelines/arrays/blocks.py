"""Which worlds have no feedback; long pieces of their timelines, ends and chunks."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Int, Shaped

from ...files.timeline import (
    NO_COMMIT,
    Chunk,
    Incident,
    Incidents,
    Jobs,
    Outcome,
    Rows,
    StopReason,
)
from ...parts.base import tag
from ...parts.errors import ScenarioError
from ...world.clients import Clients, Server
from ...world.faults import Losses
from ...world.protocol import LockStep, Protocol, Rule
from ...world.world import World
from ..base import FOREVER, RunTimeline
from .job_arrays import JobArrays

MANY = 32
"""Clients from which on arrays are faster, where all make one job at a time."""


def free_rule(protocol: Protocol) -> Rule | None:
    """Returns a protocol's rule without feedback; None with feedback.

    A protocol that inherits from another and plays otherwise has its own rule, or none.
    """
    for kind in type(protocol).__mro__:
        own = vars(kind)
        if "free_rule" in own:
            return protocol.free_rule
        if "play" in own or "records" in own:
            return None
    return None


def feedback(
    protocol: Protocol,
    clients: Clients | None,
    server: Server,
    num_clients: int,
    *,
    limited: bool,
) -> str:
    """Returns why a world is played by SimPy, in a few words; empty if it is not.

    Mostly it is feedback on who acts when.

    A world without feedback is one in which each client's times follow from its own
    draws: any number of stages, links that are not shared, losses with repeats,
    slowdowns, groups and local steps.

    Args:
        protocol: The protocol.
        clients: Its clients; None where data are pooled.
        server: Resources that they share.
        num_clients: Number of clients.
        limited: Whether the number of messages of a client is limited.
    """
    if free_rule(protocol) is None:
        return f"the protocol {tag(type(protocol))}"
    if limited:
        return "a privacy budget, which ends the run when a client has spent it"
    if server.queues:
        return "the server's queue"
    if server.upload_bandwidth is not None or server.download_bandwidth is not None:
        return "a link that clients share"
    if clients is None:
        return ""
    if clients.local_steps_by is not None:
        return "local steps that change"
    if clients.selection is not None:
        return "a selection of clients"
    if not all(slow.in_arrays for slow in clients.slowdowns):
        return "a slowdown that is worked out job by job"
    behaviours = [each for _, _, each in clients.behaviours(num_clients)]
    if any(behaviour.power is not None for behaviour in behaviours):
        return "computing power that changes over time"
    if any(behaviour.comes_and_goes for behaviour in behaviours):
        return "clients that come and go"
    slow = any(slow.of_moments for slow in clients.slowdowns)
    if isinstance(free_rule(protocol), LockStep):
        if slow or any(behaviour.loss is not None for behaviour in behaviours):
            return "rounds of clients who are slow at times, or lose messages"
    elif slow and num_clients < MANY:
        return f"fewer than {MANY} clients that are slow at times"
    return ""


BLOCK = 65_536
"""Contributions that are worked out at once, where clients are few."""
FIRST = 64
"""Jobs of each client that are worked out first, at most."""
STUCK = 100_000
"""Contributions at one instant after which time does not advance."""


Block = tuple[Chunk, Int[np.ndarray, " J"]]
"""A piece of a timeline; and its rows by the end of each of its jobs, in order, that
with which the job ended included."""


class Limits:
    """The ends of a run."""

    def __init__(self, timeline: RunTimeline, world: World) -> None:
        stop = timeline.stop.time
        self.time: int | float = inf if stop is None else world.clock(stop)
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
        """Returns the first row that reaches a counted limit, and why; or None."""
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
        chunk, ended = block if left is None else _joined(left, block)
        rows, jobs, stop, incidents, *_ = chunk
        size, left = rows.time.size, None
        if stop is None and size <= num_rows // 2:
            left = chunk, ended
            continue
        part = -(-size // max(1, -(-size // num_rows)))
        start, job, incident = 0, 0, 0
        for end in (*range(part, size, part or 1), size):
            last_job, last, why = None, None, stop
            if end < size:
                last_job = int(np.searchsorted(ended, end, side="right"))
                until, why = rows.time[end - 1], None
                last = int(np.searchsorted(incidents.time, until, side="right"))
            own = _cut(jobs, job, last_job), why, _cut(incidents, incident, last)
            yield Chunk(rows.slice(start, end), *own)
            start, job, incident = end, last_job, last


Columns = TypeVar("Columns", Rows, Jobs, Incidents)


def _cut(columns: Columns, start: int | None, end: int | None) -> Columns:
    return type(columns)(*(column[start:end] for column in columns))


def _joined(first: Block, second: Block) -> Block:
    def both(one: Columns, other: Columns) -> Columns:
        return type(one)(*map(np.concatenate, zip(one, other, strict=True)))

    (one, ended), (other, later) = first, second
    rows, jobs = both(one.rows, other.rows), both(one.jobs, other.jobs)
    incidents = both(one.incidents, other.incidents)
    ends = np.concatenate([ended, later + one.rows.time.size])
    return Chunk(rows, jobs, other.stop, incidents), ends


def standstill(commits: int, seconds: float) -> ScenarioError:
    """Returns the error of a world in which time does not advance."""
    return ScenarioError(
        f"clients must take time, but {commits} commits happened at {seconds} s; give "
        f"clients.compute or clients.idle a law that is not always 0"
    )


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
        _noted(world, rejected, Incident.REJECTED, 1),
        _noted(world, lost, Incident.GAVE_UP, lost.sends),
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
        _noted(world, work.at(resent), Incident.RESENT, repeats[resent]),
        _noted(world, work.at(twice), Incident.DUPLICATE, 1),
    )
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def in_order_of_time(notes: Sequence[Notes]) -> Incidents:
    """Returns incidents of several kinds, in order of time."""
    time, client, what, number = map(np.concatenate, zip(*notes, strict=True))
    order = np.lexsort((number, what, client, time))
    whole = (column[order].astype(np.int32) for column in (client, what, number))
    return Incidents(time[order], *whole)


def _noted(
    world: World,
    work: JobArrays,
    what: Incident,
    number: Int[np.ndarray, " J"] | int | None,
) -> Notes:
    size = work.client.size
    numbers = np.broadcast_to(1 if number is None else number, size)
    return world.seconds(work.end), work.client, np.full(size, int(what)), numbers


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
    outcome: np.ndarray | int,
    uploads: np.ndarray | int,
) -> Jobs:
    read, started, computed, sent, arrived, applied = times

    def whole(values: np.ndarray | int) -> np.ndarray:
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
