"""The kernel of FedAT: a cloud that has the newest model of each tier."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from ....problem.horizontal import HorizontalProblem
from . import kernel


class TierState(NamedTuple):
    """The models of the cloud and of the tiers.

    Attributes:
        cloud: The cloud's model.
        models: The model that each tier's clients read, in a tuple of one level.
        newest: The last model that each tier has sent, at first the start.
        updates: Number of them.
        sums: Sum of the messages of each tier's clients in its round.
        counts: How many they are.
        key: Random key of training; None without any.
    """

    cloud: kernel.Model
    models: tuple[kernel.Models]
    newest: kernel.Models
    updates: Int[Array, " E"]
    sums: kernel.Models
    counts: Int[Array, " E"]
    key: Key[Array, ""] | None


class TierKernel(kernel.HierarchicalKernel):
    """Applies each contribution at its client's tier, and merges all tiers' newest."""

    def init(self, problem: HorizontalProblem, key: Key[Array, ""]) -> Any:
        usual = super().init(problem, key)
        return TierState(
            usual.cloud,
            (usual.models[0],),
            usual.models[0],
            jnp.zeros_like(usual.counts),
            usual.sums,
            usual.counts,
            usual.key,
        )

    def _upwards(
        self,
        state: Any,
        edge: Int[Array, ""],
        model: kernel.Model,
        ended: Bool[Array, ""],
    ) -> Any:
        newest = state.newest.at[edge].set(jnp.where(ended, model, state.newest[edge]))
        updates = state.updates.at[edge].add(ended)
        weights: Float[Array, " E"] = jnp.flip(updates) / jnp.maximum(updates.sum(), 1)
        cloud = jnp.tensordot(weights.astype(newest.dtype), newest, 1)
        cloud = jnp.where(ended, cloud, state.cloud)
        (models,) = state.models
        models = models.at[edge].set(jnp.where(ended, cloud, models[edge]))
        return state._replace(
            cloud=cloud, models=(models,), newest=newest, updates=updates
        )
