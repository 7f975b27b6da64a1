"""Steps that follow one after the other, of one client or of all in turn."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Int

from ...files.timeline import NO_INCIDENTS, Jobs, StopReason
from ...world.protocol import Turns
from ...world.recorders.arrays import server_rows
from ...world.streams import Purpose
from ...world.world import World
from ..base import RunTimeline
from . import ends
from .blocks import BLOCK, FIRST, STUCK, Block, Limits, standstill
from .draws import StageDraws
from .job_arrays import JobArrays


class TurnsPlayer:
    """The timeline of a run whose clients commit in turn, or of pooled data.

    Args:
        timeline: Timeline of the run.
        world: Its world.
        rule: What the protocol does.
    """

    def __init__(self, timeline: RunTimeline, world: World, rule: Turns) -> None:
        self._world, self._rule = world, rule
        self._step = StageDraws(world, Purpose.STEP)
        self._limits = Limits(timeline, world)

    def blocks(self) -> Iterator[Block]:
        """Yields the timeline, piece by piece.

        Raises:
            ScenarioError: a law gave an impossible duration, or time stands still.
        """
        K, made, standing, size = self._world.num_clients, 0, 0, FIRST
        # When each client has read, in the order in which they come.
        read: Any = np.zeros(K, np.float64 if self._world.tick is None else np.int64)
        most = min(self._limits.turns, self._limits.contributions)
        while True:
            turns = max(1, -(-min(size, most - made) // K))
            size = min(2 * size, BLOCK)
            steps = self._step.next(np.arange(K), turns).reshape(K, turns).T.ravel()
            last = read[-1:]
            time = np.add.accumulate(np.concatenate([last, steps]))[1:]
            block = self._block(np.concatenate([read, time]), made)
            yield block
            if block.stop is not None:
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
        jobs = ends.ended(world, over, 0 * version, number, time)
        ended = np.arange(1, count + 1)
        if reason is not None:
            # Every client is at a job, for which it read when it committed last.
            coming = np.arange(made + count, made + count + K)
            left = self._work(coming, moments[count : count + K], moments[:K])
            left = left.at(np.argsort(left.client))
            others = ends.under_way(world, left, now)
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
        return Block(rows, jobs, ended, NO_INCIDENTS, reason)

    def _work(
        self, version: Int[np.ndarray, " n"], read: np.ndarray, end: np.ndarray
    ) -> JobArrays:
        """Returns the jobs that are applied to some versions."""
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
