"""Minibatches of clients whose shares are of unequal sizes: short batches, epochs."""

from collections.abc import Sequence
from copy import copy

import numpy as np
from jaxtyping import Int

from ..files.timeline import NO_SAMPLE
from .sampler import Sampler, Sampling


class UnevenSampler(Sampler):
    """Minibatches of a client's own samples, as many and as large as it has them.

    A batch has `size` samples, or all of a client that has fewer. A job has `steps`
    such batches; or, with `epochs`, the batches of that many passes over the client's
    samples, each in an order of its own and with a last batch of what is left.

    The samples of a job are `steps` batches of `size` places, those of the job first;
    what is left over is `NO_SAMPLE`. So a batch of a job has its samples first, and one
    that does not exist has none.

    Args:
        seed: Seed of the run.
        pools: Sample ids of each client, or one pool for all clients.
        size: Number of samples of a batch.
        sampling: Way to draw samples; plays no part in epochs.
        steps: Number of batches of a job, where no epochs are given.
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

    def batch(self, client: int, job: int) -> Int[np.ndarray, " S"]:
        return self._drawn(np.array([client]), np.array([job]))[0]

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
            even.size, even.width = size, samples
            even._draw = self._draw._replace(size=size, steps=samples // size)
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
    """Returns samplers whose jobs have places alike, so that one program takes them.

    Args:
        samplers: Those of runs that are executed together.
        least: Least number of batches with a place, where clients have their own.
    """
    if all(sampler.own_steps is None for sampler in samplers):
        return list(samplers)
    steps = max(least, *(sampler.steps for sampler in samplers))
    size = max(sampler.size for sampler in samplers)
    return [UnevenSampler.of(each).widened(steps, size) for each in samplers]
