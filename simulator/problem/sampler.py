"""Keyed minibatches: the samples of a job, a pure function of (seed, client, job).

They are drawn for a chunk of the timeline at a time, on the host: neither the clock
nor the timeline needs samples.
"""

from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int

from ..files.job_steps import JobSteps
from ..files.timeline import NO_SAMPLE, NO_WORKER, Rows, effects
from ..parts.errors import ScenarioError
from ..world.streams import Purpose, Streams
from .independent import Independent

AHEAD = 16
"""Number of jobs whose batches are drawn when one is asked for."""
SHUFFLED = 1024
"""Least number of ids for which permutations are drawn together."""
REMEMBERED = 2**22
"""Largest number of ids in the permutations that a sampler keeps."""
Sampling = Literal["distinct", "replacement", "shuffled"]
"""Ways to draw the samples of a batch; see `Sampler`."""


class Sampler:
    """Minibatches of a client's own samples.

    A job has `steps` local batches of `size` samples, one after the other. With
    `distinct`, each is a uniformly random set of samples, independent of all others;
    with `replacement`, each sample is drawn uniformly and independently. With
    `shuffled`, a client goes through its samples in random order, epoch after epoch,
    each in an order of its own: job j has the positions from `j * width` to
    `(j + 1) * width` of the endless sequence, so that a batch may end one epoch and
    begin the next.

    Args:
        seed: Seed of the run.
        pools: Sample ids of each client, or one pool for all clients.
        size: Number of samples of a local batch.
        sampling: Way to draw samples.
        steps: Number of local batches of a job, >= 1.
        common: Whether all workers of a row share one batch, keyed by the row's
            version.
        by_round: Whether the rows of a round share it, too.

    Attributes:
        size: Number of samples of a local batch.
        steps: Number of local batches of a job.
        width: Number of samples of a job, `S`: `steps * size`.
        common: Whether all workers of a row share one batch.
        num_samples: Number of samples of the first client.
        own_steps: Local batches of each client's job; None where all have `steps`
            batches of `size` samples.
        own_samples: Samples of each client's job.
        job_steps: Local batches of each job, the first of those that it draws; None
            where a client's jobs have all.

    Raises:
        ScenarioError: A batch is larger than a client's samples, and drawn without
            replacement.

    Source: VAFL, V-31.
    """

    own_steps: Int[np.ndarray, " K"] | None = None
    own_samples: Int[np.ndarray, " K"] | None = None
    job_steps: JobSteps | None = None

    def __init__(
        self,
        seed: int,
        pools: list[Int[np.ndarray, " _"]],
        size: int,
        *,
        sampling: Sampling = "distinct",
        steps: int = 1,
        common: bool = False,
        by_round: bool = False,
    ) -> None:
        self.size, self.steps, self.width = size, steps, steps * size
        self.common, self._by_round = common, by_round
        self._pools, self.num_samples = pools, pools[0].size
        self._sampling: Sampling = sampling
        self._seed, self._streams = seed, Streams(seed)
        self._check(size, min(pool.size for pool in pools))
        largest = max(pool.size for pool in pools)
        self._draw = Independent(
            self._streams, size, steps, sampling == "distinct", common
        )
        self._joined = np.concatenate(pools)
        self._sizes = np.array([pool.size for pool in pools])
        self._first = np.cumsum(self._sizes) - self._sizes
        # Permutations of small pools are drawn together.
        self._lengths = np.array(
            [max(1, SHUFFLED // pool.size) * pool.size for pool in pools]
        )
        self._ahead = lru_cache(maxsize=4096)(self._successive)
        kept = max(16, REMEMBERED // max(largest, SHUFFLED))
        self._epochs = lru_cache(maxsize=kept)(self._permuted)

    def _check(self, size: int, smallest: int) -> None:
        if size > smallest and self._sampling != "replacement":
            raise ScenarioError(
                f"algorithm.batch must be at most the {smallest} samples of a client, "
                f"got {size}; take a smaller batch, or sampling: replacement"
            )

    def batch(self, client: int, job: int) -> Int[np.ndarray, " S"]:
        """Returns the sample ids of one job, those of its first local batch first."""
        if self._sampling == "shuffled":
            first, start = divmod(job * self.width, int(self._length(client)))
            last = first + (start + self.width - 1) // int(self._length(client))
            drawn = [self._epochs(client, block) for block in range(first, last + 1)]
            return np.concatenate(drawn)[start : start + self.width]
        return self._ahead(client, job // AHEAD)[job % AHEAD]

    def attach(self, rows: Rows) -> Int[np.ndarray, "T V S"]:
        """Returns the samples of every row: `V` is `W`, or 1 where they are common.

        A REFRESH has the samples of the worker that it names first.
        """
        if self.common:
            worker = np.zeros_like(rows.worker[:, :1])
            job = (rows.round if self._by_round else rows.version)[:, None]
        else:
            worker, job = rows.worker, rows.job
        takes = effects(rows.kind).samples[:, None]
        present: Bool[np.ndarray, "T V"] = (worker != NO_WORKER) & takes
        samples = np.full((*worker.shape, self.width), NO_SAMPLE, np.int32)
        if present.any():
            samples[present] = self._drawn(worker[present], job[present])
        if self.job_steps is not None and present.any():
            steps = self.job_steps.of(worker[present], job[present])
            left = np.arange(self.width) >= steps[:, None] * self.size
            samples[present] = np.where(left, NO_SAMPLE, samples[present])
        return samples

    def _drawn(
        self, client: Int[np.ndarray, " j"], job: Int[np.ndarray, " j"]
    ) -> Int[np.ndarray, "j S"]:
        draw = self._shuffled if self._sampling == "shuffled" else self._independent
        return draw(client, job)

    def _independent(
        self, client: Int[np.ndarray, " j"], job: Int[np.ndarray, " j"]
    ) -> Int[np.ndarray, "j S"]:
        own = client if len(self._pools) > 1 else np.zeros_like(client)
        places = self._draw.places(client, job, self._sizes[own])
        return self._joined[self._first[own][:, None] + places]

    def _successive(self, client: int, block: int) -> Int[np.ndarray, "J S"]:
        job = np.arange(block * AHEAD, (block + 1) * AHEAD)
        return self._independent(np.full(AHEAD, client), job)

    def _shuffled(
        self, client: Int[np.ndarray, " j"], job: Int[np.ndarray, " j"]
    ) -> Int[np.ndarray, "j S"]:
        """Returns successive positions of each client's endless sequence.

        A sequence consists of blocks of whole epochs. The blocks that a chunk needs are
        concatenated, and one index finds every sample in them.
        """
        length = self._length(client)
        start = job.astype(np.int64) * self.width
        first, last = start // length, (start + self.width - 1) // length
        spans = last - first + 1
        # All blocks of all jobs: each job's are successive, and so are they sorted.
        within = np.arange(spans.sum()) - np.repeat(np.cumsum(spans) - spans, spans)
        keys = np.stack(
            [np.repeat(client, spans), np.repeat(first, spans) + within], axis=1
        )
        blocks, inverse = np.unique(keys, axis=0, return_inverse=True)
        drawn = [self._epochs(int(c), int(b)) for c, b in blocks]
        offset = np.cumsum([0, *(block.size for block in drawn[:-1])])
        place = offset[inverse.reshape(-1)[np.cumsum(spans) - spans]]
        at = place + start - first * length
        return np.concatenate(drawn)[at[:, None] + np.arange(self.width)]

    def _permuted(self, client: int, block: int) -> Int[np.ndarray, " n"]:
        """Returns successive epochs of a client, a permutation of its samples each."""
        pool = self._pool(client)
        epochs = int(self._length(client)) // pool.size
        tiled = np.broadcast_to(pool, (epochs, pool.size))
        return self._stream(client, block).permuted(tiled, axis=1).reshape(-1)

    def _pool(self, client: int) -> Int[np.ndarray, " n"]:
        return self._pools[client if len(self._pools) > 1 else 0]

    def _length(
        self, client: int | Int[np.ndarray, " j"]
    ) -> np.int64 | Int[np.ndarray, " j"]:
        """Returns the ids in each of a client's blocks, or of one for all clients."""
        return self._lengths[client if len(self._pools) > 1 else 0]

    def _stream(self, client: int, block: int) -> np.random.Generator:
        # A common batch has a stream of its own, apart from every client's.
        return self._streams.at(
            Purpose.SAMPLES, 2**32 if self.common else client, block
        )
