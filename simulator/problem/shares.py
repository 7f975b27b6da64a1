"""The division of a problem's data among the clients of a run. No JAX."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .data.base import Dataset
from .learning import Learning


class Shares(NamedTuple):
    """The data of a run, and the client that each part belongs to.

    Attributes:
        data: Training and test data.
        pools: Sample ids of each client, or one pool that all clients draw from.
        num_samples: Samples of each client, K numbers.
        num_features: Columns of each client, K numbers.
        labels: What the data call each client; empty where they do not.
        paired: Columns of the clients' table that show why each has its share: K
            numbers each; none where nothing pairs shares with clients.
    """

    data: Dataset
    pools: list[Int[np.ndarray, " _"]]
    num_samples: tuple[int, ...]
    num_features: tuple[int, ...]
    labels: tuple[str, ...] = ()
    paired: dict[str, Float[np.ndarray, " K"]] = {}  # noqa: RUF012


def shares(
    learning: Learning,
    seed: int,
    *,
    clients: int,
    pooled: bool,
    seconds: Float[np.ndarray, " K"] | None = None,
) -> Shares:
    """Returns the data of a run, divided among its clients.

    Args:
        learning: The problem with its data.
        seed: Seed of the run.
        clients: Number of clients, K; where data are pooled, of those who work on them.
        pooled: Whether all data are in one place.
        seconds: How long each client computes, where shares are paired by it.

    Raises:
        ScenarioError: The data cannot be divided so.
    """
    partition, data = learning.config.partition, learning.data
    pools, features = _divided(learning, seed, pooled=pooled)
    divides = partition.family == "horizontal" and not pooled
    labels = partition.labels(data) if divides else ()
    paired = {}
    if seconds is not None and divides:
        measure = partition.pairing.measured(data, pools)
        order = partition.pairing.order(seconds, measure, seed)
        pools = [pools[share] for share in order]
        labels = tuple(labels[share] for share in order) if labels else ()
        paired = {"compute_median_s": seconds, "paired_by": measure[order]}
    sizes = tuple(pool.size for pool in pools)
    return Shares(
        data=data,
        pools=pools,
        num_samples=sizes * (clients // len(pools)),
        num_features=features * (clients // len(features)),
        labels=labels,
        paired=paired,
    )


def _divided(
    learning: Learning, seed: int, *, pooled: bool
) -> tuple[list[Int[np.ndarray, " _"]], tuple[int, ...]]:
    """Returns the pools of samples, and the number of columns of each client."""
    partition, (N, P) = learning.config.partition, learning.data.x_train.shape
    if pooled:
        return [np.arange(N)], (P,)
    if partition.family == "vertical":
        return [learning.common], tuple(part.size for part in learning.columns)
    pools = partition.make(learning.data, seed)
    return pools, (P,) * len(pools)
