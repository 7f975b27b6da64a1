"""What VAFL's parties upload, and the store of that at the server."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from ....engine.kernel import Info
from ....files.timeline import NO_SAMPLE, NO_WORKER
from ....problem.vertical import VerticalProblem
from .noise import AT_START, Draw, EmbeddingNoise, perturbed


class Parties(NamedTuple):
    """The parties of a run, as far as their uploads follow from it.

    Attributes:
        problem: Vertically divided.
        key: Key of all noise.
        noise: Noise of every upload; None without.
    """

    problem: VerticalProblem
    key: Key[Array, ""]
    noise: EmbeddingNoise | None

    def std(self, weights: Float[Array, "W ..."]) -> Float[Array, " W"]:
        """Returns the standard deviation of uploads with these weights; 0 without."""
        if self.noise is None:
            return jnp.zeros(weights.shape[0], weights.dtype)
        return self.noise.std(weights)

    def uploads(
        self,
        weights: Float[Array, "W ..."],
        worker: Int[Array, " W"],
        job: Int[Array, " W"],
        samples: Int[Array, "W S"],
    ) -> Draw:
        """Returns the uploads of some parties."""
        return Draw(weights, worker, job, samples, self.std(weights))

    def embed(self, of: Draw) -> Float[Array, "W C S"]:
        """Returns the embeddings that uploads carry, perturbed."""
        return jax.vmap(self._apply)(rows(self.problem, of), of)

    def pull(self, of: Draw, to_h: Float[Array, "W D S"]) -> Float[Array, "W ..."]:
        """Returns gradients of weights from those of embeddings, regularised."""

        def back(x: Array, of: Draw, to_h: Array) -> Array:
            _, pulled = jax.vjp(
                lambda w: self._apply(x, of._replace(weights=w)), of.weights
            )
            return pulled(to_h)[0]

        found = jax.vmap(back)(rows(self.problem, of), of, to_h)
        return found + self.problem.l2 * of.weights

    def everything(self, weights: Float[Array, "M ..."]) -> Draw:
        """Returns the upload of all samples by all parties at the start."""
        M, N = self.problem.num_parties, self.problem.num_samples
        start = jnp.full(M, AT_START, jnp.int32)
        samples = jnp.broadcast_to(jnp.arange(N), (M, N))
        return self.uploads(weights, jnp.arange(M), start, samples)

    def _apply(self, x: Float[Array, "S P"], of: Draw) -> Float[Array, "C S"]:
        if self.noise is None:
            return self.problem.embedding.apply(of.weights, x)
        return perturbed(self.problem.embedding, self.key, self.noise, x, of)


def rows(problem: VerticalProblem, of: Draw) -> Float[Array, "W S P"]:
    """Returns each party's own features of its samples; anything for padding.

    Losses, errors and uploads of padding do not count, and filling it with zeros costs
    as much as half of the gather.
    """
    return problem.x.at[of.worker[:, None], of.samples].get(mode="clip")


class TableStore(NamedTuple):
    """Every embedding as it was uploaded.

    Attributes:
        table: The embeddings.
        stamp: Version at which each was uploaded.
    """

    table: Float[Array, "M N C"]
    stamp: Int[Array, "M N"]

    @classmethod
    def fill(cls, parties: Parties, weights: Float[Array, "M ..."]) -> "TableStore":
        """Returns the store after every party uploaded everything at the start."""
        everything = parties.everything(weights)
        table = parties.embed(everything).swapaxes(1, 2)
        return cls(table, jnp.full(everything.samples.shape, AT_START, jnp.int32))

    def write(
        self, parties: Parties, of: Draw, version: Int[Array, ""]
    ) -> "TableStore":
        """Stores uploads of batches, stamped with a version of the server."""
        at = of.worker[:, None], of.samples
        h = parties.embed(of).swapaxes(1, 2)
        return TableStore(
            table=self.table.at[at].set(h, mode="drop"),
            stamp=self.stamp.at[at].set(version, mode="drop"),
        )

    def read(
        self, parties: Parties, samples: Int[Array, "W S"]
    ) -> Float[Array, "W M C S"]:
        """Returns all parties' stored embeddings of some samples."""
        h = self.table.at[:, samples].get(mode="fill", fill_value=0)
        return h.transpose(1, 0, 3, 2)

    def ages(
        self, samples: Int[Array, "W S"], version: Int[Array, ""]
    ) -> Int[Array, "M W S"]:
        """Returns commits since each embedding's upload (equation 3)."""
        stamped = self.stamp.at[:, samples].get(mode="fill", fill_value=NO_SAMPLE)
        return version - stamped


class SnapshotStore(NamedTuple):
    """Each party's model at its last upload of all samples, to embed them again.

    Several times faster than a table, and the only way for deep embeddings.

    Attributes:
        weights: Weights of each party at its last upload.
        job: Job of that upload, which keys its noise.
        std: Standard deviation of its noise.
        stamp: Version at which it was made.
    """

    weights: Float[Array, "M ..."]
    job: Int[Array, " M"]
    std: Float[Array, " M"]
    stamp: Int[Array, " M"]

    @classmethod
    def fill(cls, parties: Parties, weights: Float[Array, "M ..."]) -> "SnapshotStore":
        """Returns the store after every party uploaded everything at the start."""
        start = parties.everything(weights)
        return cls(weights * 1, start.job, start.std, start.job * 1)

    def write(
        self, parties: Parties, of: Draw, version: Int[Array, ""]
    ) -> "SnapshotStore":
        """Stores uploads of all samples, stamped with a version of the server."""

        def put(kept: Array, new: Array) -> Array:
            return kept.at[of.worker].set(new, mode="drop")

        return SnapshotStore(
            put(self.weights, of.weights),
            put(self.job, of.job),
            put(self.std, of.std),
            put(self.stamp, jnp.broadcast_to(version, of.worker.shape)),
        )

    def read(
        self, parties: Parties, samples: Int[Array, "W S"]
    ) -> Float[Array, "W M C S"]:
        """Returns all parties' embeddings of some samples, as they were uploaded."""
        M = self.job.shape[0]

        def of_worker(ids: Int[Array, " S"]) -> Float[Array, "M C S"]:
            same = jnp.broadcast_to(ids, (M, ids.shape[0]))
            uploads = Draw(self.weights, jnp.arange(M), self.job, same, self.std)
            return parties.embed(uploads)

        if samples.shape[0] == 1:
            return of_worker(samples[0])[None]
        return jax.vmap(of_worker)(samples)

    def ages(
        self, samples: Int[Array, "W S"], version: Int[Array, ""]
    ) -> Int[Array, "M W S"]:
        """Returns commits since each embedding's upload (equation 3)."""
        of_party = version - self.stamp[:, None, None]
        return jnp.broadcast_to(of_party, (self.stamp.size, *samples.shape))


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
