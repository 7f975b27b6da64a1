"""How stale the embeddings are that a row of VAFL uses (equation 3)."""

import jax.numpy as jnp
from jaxtyping import Array, Int

from ...timeline import NO_SAMPLE, NO_WORKER
from ..base import Info

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
