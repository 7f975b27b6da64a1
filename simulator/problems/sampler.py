"""Keyed minibatches: which samples a job uses, a pure function of (seed, client, job).

Drawn in blocks of jobs, a chunk of the timeline at a time, on the host: the clock does
not need the samples, and neither does the timeline.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Int

from simulator.scenario.errors import ScenarioError
from simulator.streams import Purpose, Streams
from simulator.timeline import NO_SAMPLE, NO_WORKER, Rows

JOBS = 16
"""Jobs whose batches are drawn together."""


class Sampler:
    """Minibatches, i.i.d. over jobs, uniform over a client's own samples.

    Args:
        seed: of the run.
        pools: sample ids of each client, or one pool that all clients draw from.
        size: samples of a batch, `S`.
        replacement: whether a sample may occur twice in a batch.
        common: whether all workers of a row share one batch, keyed by the row's
            version.

    Raises:
        ScenarioError: a batch larger than a client's samples, without replacement.

    Source: VAFL, V-31.
    """

    def __init__(
        self,
        seed: int,
        pools: list[Int[np.ndarray, " n"]],
        size: int,
        *,
        replacement: bool = False,
        common: bool = False,
    ) -> None:
        self.size, self.common = size, common
        self._pools, self._replacement = pools, replacement
        self._streams = Streams(seed)
        smallest = min(pool.size for pool in pools)
        if size > smallest and not replacement:
            raise ScenarioError(
                f"algorithm.batch must be at most the {smallest} samples of a client, "
                f"got {size}; take a smaller batch, or replacement: true"
            )
        self._cached = lru_cache(maxsize=4096)(self._block)

    def batch(self, client: int, job: int) -> Int[np.ndarray, " S"]:
        """Returns the sample ids of one job."""
        return self._cached(client, job // JOBS)[job % JOBS]

    def attach(self, rows: Rows) -> Int[np.ndarray, "T V S"]:
        """Returns the samples of every row: `V` is `W`, or 1 where they are common.

        A REFRESH has the samples of the worker that it names first.
        """
        if self.common:
            worker = np.zeros_like(rows.worker[:, :1])
            job = rows.version[:, None]
        else:
            worker, job = rows.worker, rows.job
        present = worker != NO_WORKER
        samples = np.full((*worker.shape, self.size), NO_SAMPLE, np.int32)
        keys = np.stack([worker[present], job[present] // JOBS], axis=1)
        blocks, inverse = np.unique(keys, axis=0, return_inverse=True)
        if blocks.size:
            drawn = np.stack([self._block(int(c), int(b)) for c, b in blocks])
            samples[present] = drawn[inverse.reshape(-1), job[present] % JOBS]
        return samples

    def _block(self, client: int, block: int) -> Int[np.ndarray, "J S"]:
        pool = self._pools[client if len(self._pools) > 1 else 0]
        n, shape = pool.size, (JOBS, self.size)
        # A common batch has a stream of its own, apart from every client's.
        key = 2**32 if self.common else client
        generator = self._streams.at(Purpose.SAMPLES, key, block)
        if self._replacement:
            return pool[generator.integers(0, n, shape)]
        if 2 * self.size > n:
            tiled = np.broadcast_to(np.arange(n), (JOBS, n))
            return pool[generator.permuted(tiled, axis=1)[:, : self.size]]
        return pool[_distinct(generator, n, shape)]


def _distinct(
    generator: np.random.Generator, n: int, shape: tuple[int, int]
) -> Int[np.ndarray, "J S"]:
    """Draws rows of distinct numbers below n, each set of them equally likely.

    Repeats are drawn again until there are none. The procedure treats all numbers
    alike, so the law of the resulting set is invariant under relabelling: uniform.
    """
    ids = generator.integers(0, n, shape)
    while True:
        order = np.argsort(ids, axis=1, kind="stable")
        ordered = np.take_along_axis(ids, order, axis=1)
        row, column = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
        if not row.size:
            return ids
        ids[row, order[row, column + 1]] = generator.integers(0, n, row.size)
