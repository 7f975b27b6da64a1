"""Rounds in which everyone works, and which are as long as their slowest client."""

from collections.abc import Iterator

import numpy as np

from ...files.timeline import NO_INCIDENTS, Jobs, StopReason
from ...world.protocol import LockStep
from ...world.recorders.arrays import server_rows
from ...world.world import World
from ..base import RunTimeline
from . import ends
from .blocks import BLOCK, FIRST, STUCK, Block, Limits, standstill
from .job_arrays import JobArrays, together
from .paths import Paths


class LockStepPlayer:
    """The timeline of a run whose clients all wait for each other.

    Args:
        timeline: Timeline of the run.
        world: Its world, without feedback and without losses.
        rule: What the protocol does.
    """

    def __init__(self, timeline: RunTimeline, world: World, rule: LockStep) -> None:
        self._world = world
        self._paths = Paths(world)
        self._limits = Limits(timeline, world)

    def blocks(self) -> Iterator[Block]:
        """Yields the timeline, piece by piece.

        Raises:
            ScenarioError: a law gave an impossible duration, or time stands still.
        """
        K, limits = self._world.num_clients, self._limits
        made, standing, most = 0, 0, FIRST
        starts, work = np.zeros(1, self._paths.last.dtype), None
        while True:
            left = min(limits.turns - made, limits.contributions // K - made)
            most = min(2 * most, max(1, BLOCK // K))
            # One round more than ends: some of its jobs are under way by then.
            starts, work = self._add(starts, work, 1 + max(1, min(most, left)))
            block = self._block(starts, work, made)
            yield block
            if block.stop is not None:
                return
            ended = starts.size - 1
            made += ended
            standing = standing + K * ended if starts[-1] == starts[0] else 0
            if standing > STUCK:
                raise standstill(standing, self._world.seconds(starts[:1])[0])
            starts, work = starts[-1:], work.at(np.arange(ended * K, work.client.size))

    def _add(
        self, starts: np.ndarray, work: JobArrays | None, rounds: int
    ) -> tuple[np.ndarray, JobArrays]:
        """Adds rounds to those that are known, of which the last has not ended.

        Returns:
            When rounds begin, and their jobs: of each round those of all clients.
        """
        K = self._world.num_clients
        drawn = self._paths.durations(np.arange(K), rounds)
        sums = np.zeros((rounds, len(drawn.stages) + 1, K), starts.dtype)
        for place, (_, column) in enumerate(drawn.stages, start=1):
            sums[:, place] = np.transpose(np.broadcast_to(column, (K, rounds)))
        later, time = [], starts[-1]
        if work is not None:
            time = work.end[-K:].max()
            later.append(time)
        for times in sums:
            times[0] = time
            np.add.accumulate(times, axis=0, out=times)
            time = times[-1].max()
            later.append(time)
        everyone = np.arange(K)
        first = int(drawn.first_job[0])
        added = self._paths.work(
            drawn,
            np.tile(everyone, rounds),
            np.repeat(np.arange(first, first + rounds), K),
            lambda stages: sums[:, stages].ravel(),
        )
        added.read_version[:] = added.job  # every round is a version
        starts = np.concatenate([starts, np.array(later[:-1], starts.dtype)])
        return starts, added if work is None else together([work, added])

    def _block(self, starts: np.ndarray, work: JobArrays, made: int) -> Block:
        """Returns the rounds that have ended: a round ends when the next begins."""
        world, K = self._world, self._world.num_clients
        time = starts[1:]
        number = np.arange(made + 1, made + time.size + 1)
        reason, now = None, starts[-1]
        rounds = int(np.searchsorted(time, self._limits.time, side="right"))
        if rounds < time.size:
            reason, now = StopReason.TIME, self._limits.time
        end = self._limits.first(number[:rounds], K * number[:rounds])
        if end is not None:
            rounds, reason = end[0] + 1, end[1]
            now = time[rounds - 1]
        time, number = time[:rounds], number[:rounds]
        over = work.at(np.arange(rounds * K))
        jobs = ends.ended(
            world,
            over,
            np.zeros(rounds * K, np.int64),
            np.repeat(number, K),
            np.repeat(time, K),
        )
        ended = np.repeat(np.arange(1, rounds + 1), K)
        if reason is not None:
            left = work.at(np.arange(rounds * K, (rounds + 1) * K))
            timed = reason is StopReason.TIME
            reads = np.ones(K, bool) if left.own is None else ~left.own
            if timed:
                reads |= left.read <= now
            left = left.at(reads)
            arrived = (left.end <= now) & timed
            others = ends.under_way(world, left, now, arrived=arrived)
            jobs = Jobs(*map(np.concatenate, zip(jobs, others, strict=True)))
            ended = np.concatenate([ended, np.full(others.client.size, rounds)])
        shape = rounds, K
        none = np.zeros(rounds, np.int64)
        rows = server_rows(
            time=world.seconds(time),
            kind=none,
            worker=over.client.reshape(shape),
            job=over.job.reshape(shape),
            version=number - 1,
            read_version=over.read_version.reshape(shape),
            read_slot=np.zeros(shape, np.int64),
            write_slot=none,
            round=number - 1,
        )
        return Block(rows, jobs, ended, NO_INCIDENTS, reason)
