"""Keyed minibatches: the samples of a job, a pure function of (seed, client, job).

They are drawn for a chunk of the timeline at a time, on the host: neither the clock
nor the timeline needs samples.
"""

from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from ..files.job_steps import JobSteps
from ..files.timeline import NO_SAMPLE, NO_WORKER, Rows, effects
from ..parts.errors import ScenarioError
from ..world.streams import SEEK, Purpose, Streams

ORDERED = 4
"""Pools of at most this number of batches are shuffled as a whole."""
AT_ONCE = 2**17
"""Numbers that are worked on at once, as many as stay in a core's cache."""

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
    each in a new order: job j has the positions from `j * width` to `(j + 1) * width`
    of the endless sequence, so that a batch may end one epoch and begin the next.

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
        size, steps, common: As given.
        width: Number of samples of a job, `S`: `steps * size`.
        num_samples: Number of samples of the first client.
        own_steps: Local batches of each client's job; None where all have `steps`
            batches of `size` samples.
        own_samples: Samples of each client's job.
        job_steps: Local batches of each job, the first of its draws; None where a
            client's jobs have all.

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
        self._joined = np.concatenate(pools)
        self._sizes = np.array([pool.size for pool in pools])
        self._first = np.cumsum(self._sizes) - self._sizes
        # Permutations of small pools are drawn together.
        self._lengths = np.array(
            [max(1, SHUFFLED // pool.size) * pool.size for pool in pools]
        )
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
        return self._drawn(np.array([client]), np.array([job]))[0]

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
        """Returns the batches of some jobs, in any order and with repeats."""
        own = client if len(self._pools) > 1 else np.zeros_like(client)
        # A common batch has a stream of its own, apart from every client's.
        key = np.full(job.shape, 2**32) if self.common else client
        keys = np.stack([self._sizes[own], key, job], axis=1, dtype=np.int64)
        order = np.lexsort(keys.T[::-1])
        keys = keys[order]
        new = np.append(True, (keys[1:] != keys[:-1]).any(axis=1))
        drawn = self._of_different(keys[new])
        found = np.empty((job.size, self.steps * self.size), np.int64)
        found[order] = drawn[np.cumsum(new) - 1]
        return self._joined[self._first[own][:, None] + found]

    def _of_different(self, keys: Int[np.ndarray, "j 3"]) -> Int[np.ndarray, "j S"]:
        """Returns the batches of jobs that are sorted by pool, client and number."""
        found = np.empty((keys.shape[0], self.steps * self.size), np.int64)
        distinct = self._sampling == "distinct"
        whole = keys[:, 0] <= ORDERED * self.size if distinct else keys[:, 0] < 0
        # The pools that are put into order are first; those of one size go together.
        sizes, counts = np.unique(keys[whole, 0], return_counts=True)
        start = 0
        for n, count in zip(sizes.tolist(), counts.tolist(), strict=True):
            for part in _parts(start, start + count, n * self.steps):
                found[part] = self._ordered(n, keys[part])
            start += count
        for part in _parts(start, keys.shape[0], self.steps * self.size):
            found[part] = self._single(keys[part])
        return found

    def _ordered(self, n: int, keys: Int[np.ndarray, "j 3"]) -> Int[np.ndarray, "j S"]:
        """Draws batches as the beginnings of whole pools in random order.

        The order of independent numbers is uniform; two of them are equal with a
        chance below n**2 / 2**53.
        """
        numbers = self._numbers(keys, n * self.steps)
        order = np.argsort(numbers.reshape(-1, n), axis=1)
        return order[:, : self.size].reshape(keys.shape[0], -1)

    def _single(self, keys: Int[np.ndarray, "j 3"]) -> Int[np.ndarray, "j S"]:
        """Draws every sample by itself, and repeats again until there are none.

        All samples are treated alike, so the law of the batch is invariant under their
        relabelling: all sequences of different samples are equally likely.
        """
        n = keys[:, :1]
        width = self.steps * self.size
        ids = (self._numbers(keys, width) * n).astype(np.int64)
        if self._sampling != "distinct":
            return ids
        batches = ids.reshape(-1, self.size)
        left = np.arange(batches.shape[0])  # batches that may have repeats
        turn = 0
        while (repeats := _repeats(batches[left]))[0].size:
            turn += 1
            batch, column = left[repeats[0]], repeats[1]
            own = keys[batch // self.steps]
            position = own[:, 2] * _words(width)
            position += batch % self.steps * self.size + column
            again = self._streams.scattered(Purpose.SAMPLES, own[:, 1], position, turn)
            batches[batch, column] = (again * own[:, 0]).astype(np.int64)
            left = np.unique(batch)
        return ids

    def _numbers(
        self, keys: Int[np.ndarray, "j 3"], width: int
    ) -> Float[np.ndarray, "j width"]:
        """Returns each job's own numbers in (0, 1).

        Successive jobs of a client are one stretch of its stream.
        """
        words = _words(width)
        client, job = keys[:, 1], keys[:, 2]
        goes_on = (client[1:] == client[:-1]) & (job[1:] == job[:-1] + 1)
        starts = np.flatnonzero(np.append(True, ~goes_on))
        lengths = np.diff(starts, append=job.size)
        found = np.empty((job.size, words))
        long = lengths * words >= SEEK
        for at, length in zip(starts[long], lengths[long], strict=True):
            found[at : at + length] = self._streams.uniforms(
                Purpose.SAMPLES, int(client[at]), int(job[at]) * words, length * words
            ).reshape(length, words)
        short = np.repeat(~long, lengths)
        if short.any():
            found[short] = self._streams.rectangle(
                Purpose.SAMPLES, client[short], job[short] * words, words
            )
        return found[:, :width]

    def _shuffled(
        self, client: Int[np.ndarray, " j"], job: Int[np.ndarray, " j"]
    ) -> Int[np.ndarray, "j S"]:
        """Returns successive positions of each client's endless sequence.

        A sequence consists of blocks of whole epochs. The blocks that a chunk needs are
        concatenated, and one index finds every sample in them.
        """
        length = self._lengths[client if len(self._pools) > 1 else 0]
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
        own = client if len(self._pools) > 1 else 0
        pool, epochs = self._pools[own], self._lengths[own] // self._sizes[own]
        tiled = np.broadcast_to(pool, (epochs, pool.size))
        # A common batch has a stream of its own, apart from every client's.
        key = 2**32 if self.common else client
        draw = self._streams.at(Purpose.SAMPLES, key, block)
        return draw.permuted(tiled, axis=1).reshape(-1)


class UnevenSampler(Sampler):
    """Minibatches of a client's own samples, as many and as large as it has them.

    A batch has `size` samples, or all of a client that has fewer. A job has `steps`
    such batches; or, with `epochs`, the batches of that many passes over the client's
    samples, each in a new order and with the rest as last batch.

    The samples of a job are `steps` batches of `size` places, those of the job first;
    the rest is `NO_SAMPLE`. So a batch of a job has its samples first, and one that
    does not exist has none.

    Args:
        seed: Seed of the run.
        pools: Sample ids of each client, or one pool for all clients.
        size: Number of samples of a batch.
        sampling: Way to draw samples; plays no part in epochs.
        steps: Number of batches of a job, without epochs.
        epochs: Passes over a client's samples in a job.
        own: Number of batches of each client's job, in place of `steps`.

    Attributes:
        size: Most samples of a batch.
        steps: Most batches of a job.

    Source: McMahan et al., Communication-Efficient Learning of Deep Networks from
    Decentralized Data (2017), Algorithm 1, which divides P_k into batches of B.
    """

    def __init__(
        self,
        seed: int,
        pools: list[Int[np.ndarray, " _"]],
        size: int,
        *,
        sampling: Sampling = "distinct",
        steps: int = 1,
        epochs: int | None = None,
        own: Int[np.ndarray, " K"] | None = None,
    ) -> None:
        shares = np.array([pool.size for pool in pools])
        most = np.full_like(shares, size) if sampling == "replacement" else shares
        self._own_size = np.minimum(size, shares if epochs else most)
        self._epochs_of_job = epochs
        if epochs:
            batches = epochs * -(-shares // self._own_size)
            samples, sampling = epochs * shares, "shuffled"
        else:
            batches = np.full_like(shares, steps) if own is None else own
            samples = batches * self._own_size
        largest = int(self._own_size.max())
        super().__init__(
            seed, pools, largest, sampling=sampling, steps=int(batches.max())
        )
        self.own_steps, self.own_samples = batches, samples

    def widened(self, steps: int, size: int) -> "UnevenSampler":
        """Returns the same minibatches, with room for more batches of more samples."""
        wider = copy(self)
        wider.size, wider.steps, wider.width = size, steps, steps * size
        return wider

    @classmethod
    def of(cls, sampler: Sampler) -> "UnevenSampler":
        """Returns the minibatches of any sampler whose clients draw their own."""
        if isinstance(sampler, cls):
            return sampler
        return cls(
            sampler._seed,
            sampler._pools,
            sampler.size,
            sampling=sampler._sampling,
            steps=sampler.steps,
        )

    def _check(self, size: int, smallest: int) -> None:
        """Refuses nothing: batches are as short as shares are."""

    def _drawn(
        self, client: Int[np.ndarray, " j"], job: Int[np.ndarray, " j"]
    ) -> Int[np.ndarray, "j S"]:
        """Draws the jobs of clients with shares of one size together."""
        assert self.own_samples is not None
        own = client if len(self._pools) > 1 else np.zeros_like(client)
        found = np.full((client.size, self.width), NO_SAMPLE, np.int64)
        kinds = np.stack([self._own_size[own], self.own_samples[own]], axis=1)
        for size, samples in np.unique(kinds, axis=0).tolist():
            which = np.flatnonzero((kinds == (size, samples)).all(axis=1))
            even = copy(self)
            even.size, even.steps, even.width = size, samples // size, samples
            drawn = Sampler._drawn(even, client[which], job[which])
            found[which[:, None], self._places(size, samples)] = drawn
        return found

    def _places(self, size: int, samples: int) -> Int[np.ndarray, " samples"]:
        """Returns where the samples of a job stand among its batches' places."""
        position = np.arange(samples)
        share = samples // self._epochs_of_job if self._epochs_of_job else samples
        epoch, within = np.divmod(position, share)
        batch = epoch * -(-share // size) + within // size
        return batch * self.size + within % size


def alike(samplers: Sequence[Sampler], least: int = 0) -> list[Sampler]:
    """Returns samplers whose jobs have equal places, so that one program takes them."""
    if all(sampler.own_steps is None for sampler in samplers):
        return list(samplers)
    steps = max(least, *(sampler.steps for sampler in samplers))
    size = max(sampler.size for sampler in samplers)
    return [UnevenSampler.of(each).widened(steps, size) for each in samplers]


def _repeats(
    batches: Int[np.ndarray, "b size"],
) -> tuple[Int[np.ndarray, " r"], Int[np.ndarray, " r"]]:
    """Returns batch and column of the samples that an earlier one of theirs equals."""
    # Sorting numbers is three times as fast as sorting their places.
    bits = int(batches.shape[1]).bit_length()
    ordered = np.sort((batches << bits) | np.arange(batches.shape[1]), axis=1)
    ids = ordered >> bits
    batch, after = np.nonzero(ids[:, 1:] == ids[:, :-1])
    return batch, ordered[batch, after + 1] & ((1 << bits) - 1)


def _parts(start: int, stop: int, width: int) -> list[slice]:
    size = max(1, AT_ONCE // width)
    return [slice(at, min(at + size, stop)) for at in range(start, stop, size)]


def _words(width: int) -> int:
    """Returns the numbers that a job is given: whole fours, for `Streams.uniforms`."""
    return -(-width // 4) * 4
