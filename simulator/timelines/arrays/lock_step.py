"""Rounds in which everyone works, as long as their slowest client; and turns."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

from ...files.timeline import Chunk, Jobs, StopReason
from ...world.protocol import Turns
from ...world.recorders.arrays import server_rows
from ...world.streams import Purpose
from ...world.world import World
from ..base import RunTimeline
from . import blocks
from .blocks import BLOCK, FIRST, STUCK, Block, Limits, standstill
from .job_arrays import JobArrays, StageDraws, together
from .paths import Paths


class LockStepPlayer:
    """The timeline of a run whose clients all wait for each other."""

    def __init__(self, timeline: RunTimeline, world: World) -> None:
        self._world = world
        self._paths = Paths(world)
        self._limits = Limits(timeline, world)

    def blocks(self) -> Iterator[Block]:
        """Yields the timeline, piece by piece.

        Raises:
            ScenarioError: a law gave an impossible duration, or time does not advance.
        """
        K, limits = self._world.num_clients, self._limits
        made, standing, most = 0, 0, FIRST
        starts, work = np.zeros(1, self._paths.last.dtype), None
        while True:
            left = min(limits.turns - made, limits.contributions // K - made)
            most = min(2 * most, max(1, BLOCK // K))
            # One round more than ends: some of its jobs are under way by then.
            starts, work = self._add(starts, work, 1 + max(1, min(most, left)))
            chunk, rows = self._block(starts, work, made)
            yield chunk, rows
            if chunk.stop is not None:
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
        jobs = blocks.ended(
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
            others = blocks.under_way(world, left, now, arrived=arrived)
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
        return Chunk(rows, jobs, reason), ended


class TurnsPlayer:
    """The timeline of a run whose clients commit in turn, or of pooled data."""

    def __init__(self, timeline: RunTimeline, world: World, rule: Turns) -> None:
        self._world, self._rule = world, rule
        self._step = StageDraws(world, Purpose.STEP)
        self._limits = Limits(timeline, world)

    def blocks(self) -> Iterator[Block]:
        """Yields the timeline, piece by piece.

        Raises:
            ScenarioError: a law gave an impossible duration, or time does not advance.
        """
        K, made, standing, size = self._world.num_clients, 0, 0, FIRST
        # When each client has read, in the order in which they come.
        read: np.ndarray = np.zeros(
            K, np.float64 if self._world.tick is None else np.int64
        )
        most = min(self._limits.turns, self._limits.contributions)
        while True:
            turns = max(1, -(-min(size, most - made) // K))
            size = min(2 * size, BLOCK)
            steps = self._step.next(np.arange(K), turns).reshape(K, turns).T.ravel()
            last = read[-1:]
            time = np.add.accumulate(np.concatenate([last, steps]))[1:]
            chunk, rows = self._block(np.concatenate([read, time]), made)
            yield chunk, rows
            if chunk.stop is not None:
                return
            standing = standing + time.size if time[-1] == last[0] else 0
            if standing > STUCK:
                raise standstill(standing, self._world.seconds(last)[0])
            read = np.concatenate([read, time])[-K:]
            made += time.size

    def _block(self, moments: np.ndarray, made: int) -> Block:
        """Returns a piece of the timeline.

        Args:
            moments: When each client read for its first job here, then the commits; a
                client reads when it commits.
            made: Commits before.
        """
        world, K = self._world, self._world.num_clients
        time = moments[K:]
        count = int(np.searchsorted(time, self._limits.time, side="right"))
        reason, now = (None, time[-1]) if count == time.size else (StopReason.TIME, 0)
        number = np.arange(made + 1, made + count + 1)
        if (end := self._limits.first(number, number)) is not None:
            count, reason = end[0] + 1, end[1]
            number = number[:count]
        time, version = time[:count], number - 1
        over = self._work(version, moments[:count], time)
        jobs = blocks.ended(world, over, 0 * version, number, time)
        ended = np.arange(1, count + 1)
        if reason is not None:
            # Every client is at a job, for which it read when it committed last.
            coming = np.arange(made + count, made + count + K)
            left = self._work(coming, moments[count : count + K], moments[:K])
            left = left.at(np.argsort(left.client))
            others = blocks.under_way(world, left, now)
            jobs = Jobs(*map(np.concatenate, zip(jobs, others, strict=True)))
            ended = np.concatenate([ended, np.full(K, count)])
        rows = server_rows(
            time=world.seconds(time),
            kind=0 * version,
            worker=over.client[:, None],
            job=over.job[:, None],
            version=version,
            read_version=over.read_version[:, None],
            read_slot=over.read_slot[:, None],
            write_slot=self._register(number),
            round=version if self._rule.rounds_are_commits else version // K,
        )
        return Chunk(rows, jobs, reason), ended

    def _work(
        self, version: Int[np.ndarray, " n"], read: np.ndarray, end: np.ndarray
    ) -> JobArrays:
        K = self._world.num_clients
        read_version = version - K + (not self._rule.reads_first)
        read_version[version < K] = 0
        return JobArrays(
            client=version % K,
            job=version // K,
            read=read,
            end=end,
            read_version=read_version,
            read_slot=self._register(read_version),
        )

    def _register(self, version: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Returns the registers of versions.

        Where a client reads first, a version is needed until K more have been made,
        else until it is its maker's turn again.
        """
        K = self._world.num_clients
        if self._rule.reads_first:
            return version % (K + 1)
        return np.where(version == 0, 0, (version - 1) % K + 1)
