"""Rounds in which everyone works, and a client whose job was lost begins it again.

How often that is follows from its own draws, so that rounds are made one at a time, of
all clients together.
"""

from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from ...protocols.free import LockStep
from ...timeline import (
    NO_COMMIT,
    Incidents,
    Jobs,
    Outcome,
    Rows,
    StopReason,
)
from ...world.world import World
from ..base import RunTimeline
from . import ends
from .blocks import (
    BLOCK,
    STUCK,
    Block,
    server_rows,
    standstill,
)
from .events import END, EventOrder
from .job_arrays import JobArrays, together
from .limits import Limits
from .paths import Paths


class Round(NamedTuple):
    """The jobs of a round.

    Attributes:
        start: Time at which it begins, in the clock's unit.
        end: Time at which everyone has arrived; infinite where one client never does.
        work: Jobs, one client's after another's; the last of each is the one that
            arrives, if any does.
        lost: Places of those that came to nothing, in the order in which they did.
        last: Place of each client's last job.
    """

    start: Any
    end: Any
    work: JobArrays
    lost: Int[np.ndarray, " L"]
    last: Int[np.ndarray, " K"]


class FaultyRoundsPlayer:
    """The timeline of a run whose clients wait for each other, in a world with faults.

    Args:
        timeline: Timeline of the run.
        world: Its world, without feedback.
        rule: What the protocol does.
    """

    def __init__(self, timeline: RunTimeline, world: World, rule: LockStep) -> None:
        assert timeline.clients is not None
        del rule
        self._world = world
        self._paths = Paths(world, timeline.clients)
        self._limits = Limits(timeline, world)
        losses = [group.config.loss for group in world.groups]
        self._timeouts = np.array([loss.timeout if loss else inf for loss in losses])
        self._standing = 0

    def blocks(self) -> Iterator[Block]:
        """Yields the timeline, piece by piece.

        Raises:
            ScenarioError: a law gave an impossible duration, or time stands still.
        """
        K, limits, made = self._world.num_clients, self._limits, 0
        going = self._round(self._paths.last.dtype.type(0), made)
        while True:
            over: list[Round] = []
            jobs = 0
            while going.end <= limits.time and going.end < inf and jobs < max(BLOCK, K):
                over.append(going)
                jobs += going.work.client.size
                number = made + len(over)
                going = self._round(going.end, number)
                if limits.first(np.array([number]), np.array([K * number])):
                    break
            block = self._block(over, going, made)
            yield block
            if block.stop is not None:
                return
            made += len(over)

    def _round(self, start: Any, number: int) -> Round:
        """Returns the jobs of a round, all of which read its version."""
        K, paths = self._world.num_clients, self._paths
        paths.last[np.isfinite(paths.last)] = start
        parts, todo = [], np.arange(K)
        while todo.size:
            work = paths.extend(todo, 1)
            work.read_version[:] = number
            parts.append(work)
            again = np.asarray(work.fate) != Outcome.APPLIED
            again &= np.isfinite(work.end) & (work.end <= self._limits.time)
            todo = work.client[again]
        work = together(parts)
        work = work.at(np.argsort(work.client, kind="stable"))
        last = np.flatnonzero(np.append(work.client[1:] != work.client[:-1], True))
        end = work.end[last].max()
        if (np.asarray(work.fate)[last] != Outcome.APPLIED).any():
            end = inf  # or after the end of the run
        self._standing = self._standing + K if end == start else 0
        if self._standing > STUCK:
            raise standstill(self._standing, self._world.seconds(np.array([start]))[0])
        until = min(end, work.end[np.isfinite(work.end)].max(initial=start))
        _, job, kind = EventOrder(K).happened(work, -1, until)
        lost = job[kind == END]
        lost = lost[np.asarray(work.fate)[lost] != Outcome.APPLIED]
        return Round(start, end, work, lost, last)

    def _block(self, over: list[Round], going: Round, made: int) -> Block:
        """Returns rounds that have ended, and the run's end if it comes in the next."""
        K, limits = self._world.num_clients, self._limits
        rounds = len(over)
        number = np.arange(made + 1, made + rounds + 1)
        reason, now = None, going.start
        if (end := limits.first(number, K * number)) is not None:
            reason = end[1]
        elif going.end > limits.time:
            reason, now = StopReason.TIME, limits.time
        elif going.end == inf:
            reason, now = StopReason.STALLED, self._last_event(going)
        time = np.array([each.end for each in over], dtype=self._paths.last.dtype)
        # Jobs that came to nothing end in their round, the others with it.
        jobs, ended = [], []
        for place, each in enumerate(over):
            jobs.append(self._lost(each, each.lost))
            ended.append(np.full(each.lost.size, place))
            jobs.append(self._applied(each, made + place + 1))
            ended.append(np.full(K, place + 1))
        incidents = [notes for each in over for notes in self._notes(each)]
        if reason is not None:
            left, own = self._left(going, now, timed=end is None)
            incidents += own
            jobs += left
            ended += [np.full(each.client.size, rounds) for each in left]
        rows = self._rows(over, time, number)
        return Block(
            rows,
            _concatenated(jobs),
            np.concatenate([np.zeros(0, np.int64), *ended]),
            _in_order(incidents),
            reason,
        )

    def _last_event(self, going: Round) -> Any:
        """Returns the time of the last event of a round that never ends."""
        work = going.work
        moments = [np.array([going.start]), work.end]
        if work.own is not None:
            moments.append(work.read[work.own])
        if work.asked is not None:
            moments.append(work.asked[work.asks])
        known = np.concatenate(moments)
        return known[np.isfinite(known)].max()

    def _lost(self, of: Round, which: Int[np.ndarray, " L"]) -> Jobs:
        own = of.work.at(which)
        none = np.full(which.size, NO_COMMIT)
        return ends.ended(self._world, own, np.asarray(own.fate), none, None)

    def _applied(self, of: Round, commit: int) -> Jobs:
        K = of.last.size
        columns = np.zeros(K, np.int64), np.full(K, commit), np.full(K, of.end)
        return ends.ended(self._world, of.work.at(of.last), *columns)

    def _left(
        self, going: Round, now: Any, *, timed: bool
    ) -> tuple[list[Jobs], list[ends.Notes]]:
        """Returns the jobs and incidents of a round in which the run ends.

        Args:
            going: The round.
            now: Time of the end in the clock's unit.
            timed: Whether everything of that instant happens before.
        """
        work = going.work
        first = np.concatenate([[True], work.client[1:] != work.client[:-1]])
        follows = first.copy()
        reads = np.isfinite(work.read)
        if timed:
            reads &= work.read <= now
            lost = going.lost[work.end[going.lost] <= now]
            follows[lost + 1] = True
        else:
            reads &= first if work.own is None else first & ~work.own
            lost = going.lost[:0]
        is_over = np.zeros(work.client.size, bool)
        is_over[lost] = True
        left = work.at(reads & ~is_over & follows)
        fate = np.asarray(left.fate)
        arrived = (fate == Outcome.APPLIED) & (left.end <= now) & timed
        going_on = ends.under_way(
            self._world, left, now, self._timeouts, arrived=arrived
        )
        notes = self._notes(going, now, reads & follows, is_over, follows)
        return [self._lost(going, lost), going_on], notes

    def _notes(
        self,
        of: Round,
        now: Any = inf,
        seen: Bool[np.ndarray, " J"] | None = None,
        is_over: Bool[np.ndarray, " J"] | None = None,
        follows: Bool[np.ndarray, " J"] | None = None,
    ) -> list[ends.Notes]:
        """Returns the incidents of a round, perhaps up to a time."""
        work, world = of.work, self._world
        if is_over is None:
            is_over = np.ones(work.client.size, bool)
        own = work.at(is_over)
        found = [ends.ended_badly(world, own, np.ones(own.client.size, bool))]
        if work.sends is not None:
            assert work.computed is not None
            sent = np.ones(work.client.size, bool) if seen is None else seen
            found.append(ends.repeated(world, work.at(sent & (work.computed <= now))))
        if work.noted is not None:
            noted = work.noted <= now
            if follows is not None:
                noted &= follows
            found.append(ends.came_or_left(world, work.at(noted)))
        return found

    def _rows(self, over: list[Round], time: np.ndarray, number: np.ndarray) -> Rows:
        K, rounds = self._world.num_clients, len(over)
        shape = rounds, K
        job = [each.work.job[each.last] for each in over]
        none = np.zeros(rounds, np.int64)
        version = np.broadcast_to((number - 1)[:, None], shape)
        return server_rows(
            self._world.seconds(time),
            none,
            np.broadcast_to(np.arange(K), shape),
            np.array(job, np.int64).reshape(shape),
            number - 1,
            version.copy(),
            np.zeros(shape, np.int64),
            none,
            number - 1,
        )


def _concatenated(jobs: list[Jobs]) -> Jobs:
    return Jobs(*map(np.concatenate, zip(*jobs, strict=True)))


def _in_order(notes: list[ends.Notes]) -> Incidents:
    empty = np.zeros(0), *(np.zeros(0, np.int64) for _ in range(3))
    return ends.in_order_of_time([empty, *notes])
