"""The store of the parties' uploads at VAFL's server."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from ...learning.vertical import VerticalProblem
from ...timeline import NO_SAMPLE, NO_WORKER
from ..base import Info
from .noise import AT_START, Draw, EmbeddingNoise, perturbed


class Upload(NamedTuple):
    """One upload of each of some parties.

    Attributes:
        worker: the parties, padded.
        job: keys the noise.
        samples: Samples whose embeddings are uploaded, padded with `NO_SAMPLE`.
        weights: Weights of the parties at the upload.
        std: Standard deviation of the noise; zero without any.
        version: Version of the server, which stamps the entries.
    """

    worker: Int[Array, " W"]
    job: Int[Array, " W"]
    samples: Int[Array, "W S"]
    weights: Float[Array, "W ..."]
    std: Float[Array, " W"]
    version: Int[Array, ""]


def embed(
    problem: VerticalProblem,
    key: Key[Array, ""],
    noise: EmbeddingNoise | None,
    upload: Upload,
) -> Float[Array, "W C S"]:
    """Returns the embeddings that an upload carries, perturbed."""
    x = rows(problem, upload.worker, upload.samples)
    if noise is None:
        return jax.vmap(problem.embedding.apply)(upload.weights, x)
    return jax.vmap(partial(perturbed, problem.embedding, key, noise))(
        upload.weights, x, Draw(upload.worker, upload.job, upload.samples, upload.std)
    )


def rows(
    problem: VerticalProblem, worker: Int[Array, " W"], samples: Int[Array, "W S"]
) -> Float[Array, "W S P"]:
    """Returns each party's own features of its samples; anything for padding.

    Losses, errors and uploads of padding do not count, and filling it with zeros costs
    as much as half of the gather.
    """
    return problem.x.at[worker[:, None], samples].get(mode="clip")


class TableStore(NamedTuple):
    """Every embedding as it was uploaded.

    Attributes:
        table: the embeddings.
        stamp: version at which each was uploaded, of a sample or of all.
    """

    table: Float[Array, "M N C"]
    stamp: Int[Array, "M N"] | Int[Array, " M"]

    @classmethod
    def fill(
        cls,
        problem: VerticalProblem,
        weights: Float[Array, "M ..."],
        noise: EmbeddingNoise | None,
        key: Key[Array, ""],
        *,
        per_sample: bool,
    ) -> "TableStore":
        """Returns the store after every party uploaded everything at the start."""
        M, N = problem.num_parties, problem.num_samples
        shape = (M, N) if per_sample else (M,)
        table = jnp.zeros((M, N, problem.embedding.num_outputs), weights.dtype)
        empty = cls(table, jnp.full(shape, AT_START, jnp.int32))
        everything = _everything(problem, weights, noise)
        h = embed(problem, key, noise, everything)
        return empty._replace(table=h.swapaxes(1, 2))

    def write(
        self,
        problem: VerticalProblem,
        key: Key[Array, ""],
        noise: EmbeddingNoise | None,
        upload: Upload,
    ) -> "TableStore":
        """Stores an upload of the batch, or of all samples if ages are per party."""
        worker = upload.worker[:, None]
        if self.stamp.ndim == 1:
            N = problem.num_samples
            every = jnp.broadcast_to(jnp.arange(N), (worker.shape[0], N))
            upload = upload._replace(samples=every)
            stamp = self.stamp.at[upload.worker].set(upload.version, mode="drop")
        else:
            stamp = self.stamp.at[worker, upload.samples].set(
                upload.version, mode="drop"
            )
        h = embed(problem, key, noise, upload).swapaxes(1, 2)
        table = self.table.at[worker, upload.samples].set(h, mode="drop")
        return TableStore(table, stamp)

    def read(
        self,
        problem: VerticalProblem,
        key: Key[Array, ""],
        noise: EmbeddingNoise | None,
        samples: Int[Array, "W S"],
    ) -> Float[Array, "W M C S"]:
        """Returns all parties' stored embeddings of some samples."""
        h = self.table.at[:, samples].get(mode="fill", fill_value=0)
        return h.transpose(1, 0, 3, 2)

    def ages(
        self, samples: Int[Array, "W S"], version: Int[Array, ""]
    ) -> Int[Array, "M W S"]:
        """Returns commits since each embedding's upload (equation 3)."""
        return _ages(self.stamp, samples, version)


class SnapshotStore(NamedTuple):
    """Each party's model at its last upload of all samples, to embed them again.

    Several times faster than a table, and the only way for deep embeddings.

    Attributes:
        weights: Weights of each party at its last upload.
        job: Job of that upload, which keys its noise.
        std: Standard deviation of its noise.
        stamp: version at which it was made.
    """

    weights: Float[Array, "M ..."]
    job: Int[Array, " M"]
    std: Float[Array, " M"]
    stamp: Int[Array, " M"]

    @classmethod
    def fill(
        cls,
        problem: VerticalProblem,
        weights: Float[Array, "M ..."],
        noise: EmbeddingNoise | None,
        key: Key[Array, ""],
        *,
        per_sample: bool,
    ) -> "SnapshotStore":
        """Returns the store after every party uploaded everything at the start."""
        assert not per_sample
        start = jnp.full(problem.num_parties, AT_START, jnp.int32)
        upload = _everything(problem, weights, noise)
        return cls(weights * 1, start, upload.std, start * 1)

    def write(
        self,
        problem: VerticalProblem,
        key: Key[Array, ""],
        noise: EmbeddingNoise | None,
        upload: Upload,
    ) -> "SnapshotStore":
        """Stores an upload of all samples."""

        def put(kept: Array, new: Array) -> Array:
            return kept.at[upload.worker].set(new, mode="drop")

        stamp = put(self.stamp, jnp.broadcast_to(upload.version, upload.worker.shape))
        return SnapshotStore(
            put(self.weights, upload.weights),
            put(self.job, upload.job),
            put(self.std, upload.std),
            stamp,
        )

    def read(
        self,
        problem: VerticalProblem,
        key: Key[Array, ""],
        noise: EmbeddingNoise | None,
        samples: Int[Array, "W S"],
    ) -> Float[Array, "W M C S"]:
        """Returns all parties' embeddings of some samples, as they were uploaded."""
        M, W = self.job.shape[0], samples.shape[0]
        parties = jnp.arange(M)

        def of_worker(ids: Int[Array, " S"]) -> Float[Array, "M C S"]:
            upload = Upload(
                worker=parties,
                job=self.job,
                samples=jnp.broadcast_to(ids, (M, ids.shape[0])),
                weights=self.weights,
                std=self.std,
                version=jnp.int32(0),
            )
            return embed(problem, key, noise, upload)

        if W == 1:
            return of_worker(samples[0])[None]
        return jax.vmap(of_worker)(samples)

    def ages(
        self, samples: Int[Array, "W S"], version: Int[Array, ""]
    ) -> Int[Array, "M W S"]:
        """Returns commits since each embedding's upload (equation 3)."""
        return _ages(self.stamp, samples, version)


def _everything(
    problem: VerticalProblem,
    weights: Float[Array, "M ..."],
    noise: EmbeddingNoise | None,
) -> Upload:
    """Returns the upload of all samples by all parties at the start."""
    M, N = problem.num_parties, problem.num_samples
    std = jnp.zeros(M, weights.dtype) if noise is None else noise.std(weights)
    return Upload(
        worker=jnp.arange(M),
        job=jnp.full(M, AT_START, jnp.int32),
        samples=jnp.broadcast_to(jnp.arange(N), (M, N)),
        weights=weights,
        std=std,
        version=jnp.int32(AT_START),
    )


def _ages(
    stamp: Array, samples: Int[Array, "W S"], version: Int[Array, ""]
) -> Int[Array, "M W S"]:
    if stamp.ndim == 1:
        return jnp.broadcast_to(
            version - stamp[:, None, None], (stamp.size, *samples.shape)
        )
    stamped = stamp.at[:, samples].get(mode="fill", fill_value=NO_SAMPLE)
    return version - stamped


UNUSED = NO_SAMPLE
"""Age of an embedding that was not used: the active party's own, which is fresh."""


def age_info(
    ages: Int[Array, "M W S"], worker: Int[Array, " W"], samples: Int[Array, "W S"]
) -> Info:
    """Summarises the ages of the other parties' embeddings, overall and per party.

    `sample` is the age for the row's first sample: a batch is exchangeable, so its
    histogram over rows is that of all ages.
    """
    M = ages.shape[0]
    of_others = jnp.arange(M)[:, None] != worker[None]
    used = (of_others & (worker != NO_WORKER)[None])[:, :, None]
    used &= (samples != NO_SAMPLE)[None]
    kept = jnp.where(used, ages, 0)
    count = used.sum(axis=(1, 2))
    total = kept.sum(axis=(1, 2), dtype=jnp.float32)
    first = jnp.where(used[:, 0, 0], ages[:, 0, 0], UNUSED)
    return {
        "embedding_staleness_mean": total.sum() / jnp.maximum(count.sum(), 1),
        "embedding_staleness_max": kept.max(),
        "clients/embedding_staleness_mean": total / jnp.maximum(count, 1),
        "clients/embedding_staleness_count": count,
        "clients/embedding_staleness_max": kept.max(axis=(1, 2)),
        "clients/embedding_staleness_sample": first,
    }
