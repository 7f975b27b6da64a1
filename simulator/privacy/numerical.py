"""Composition by numbers: Renyi divergences and privacy loss distributions.

Both are dp-accounting's. Its traps are kept in here and in `releases`: it takes a
second or two to import (so nothing does before it is needed), `compose` changes the
accountant, both return inf at delta 0, and replace-one adjacency doubles the
sensitivity in loss distributions but not in Renyi divergences, whereas a `Release` is
in units of the sensitivity claimed.

A client that draws its samples releases a mixture: the same subsets with the same
probabilities on both of two adjacent data sets. Divergences are jointly quasi-convex,
so a bound for a release of all samples holds for any share. The bounds for a draw cross
that one at large shares; the smaller counts.

Source: van Erven and Harremoes, Renyi Divergence and Kullback-Leibler Divergence
(2014), Theorem 13.
"""

from dataclasses import replace
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from .releases import Gaussian, Release, library

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

Kinds: TypeAlias = frozenset[tuple[Release, int]]


@lru_cache(maxsize=65536)
def renyi_epsilon(counts: Kinds, delta: float) -> float:
    """Computes epsilon by Renyi divergences; cached.

    Args:
        counts: Kinds of release, all protected, and how often each occurred, >= 1.
        delta: Failure probability, in (0, 1).
    """
    rdp = library("rdp")
    each = (count * _divergences(event) for event, count in counts)
    epsilon, _ = rdp.compute_epsilon(_orders(), sum(each, np.zeros(())), delta)
    return float(epsilon)


@lru_cache(maxsize=1)
def _orders() -> np.ndarray:
    return library("rdp").RdpAccountant().orders


@lru_cache(maxsize=4096)
def _divergences(event: Release) -> np.ndarray:
    """Returns the smaller of the bounds with and without the draw, at each order."""
    if event.sampling_ratio == 1:
        return _of_draw(event)
    # The library has no number at some orders of a draw.
    return np.fmin(_of_draw(event), _of_draw(_of_all(event)))


def _of_all(event: Release) -> Release:
    return replace(cast("Any", event), sampling_ratio=1.0)


def _of_draw(event: Release) -> np.ndarray:
    dpa = library()
    one, relation = event.event(), dpa.NeighboringRelation.ADD_OR_REMOVE_ONE
    if one is None:
        epsilon, orders = event.pure_epsilon, _orders()
        both = np.logaddexp(orders * epsilon, (1 - orders) * epsilon)
        return (both - np.logaddexp(0, epsilon)) / (orders - 1)
    if event.drawn == "uniform":
        relation = dpa.NeighboringRelation.REPLACE_ONE
    return library("rdp").RdpAccountant(neighboring_relation=relation).compose(one).rdp


@lru_cache(maxsize=65536)
def loss_epsilon(counts: Kinds, delta: float, interval: float) -> float:
    """Computes epsilon by privacy loss distributions; cached.

    Args:
        counts: Kinds of release, all protected and none a uniformly sampled Gaussian,
            and how often each occurred, >= 1.
        delta: Failure probability, in (0, 1).
        interval: Between losses on the grid, > 0.
    """
    kinds = sorted(counts, key=repr)
    found = _loss_epsilon(kinds, delta, interval)
    if all(
        isinstance(event, Gaussian) or event.sampling_ratio == 1 for event, _ in kinds
    ):
        return found  # a Poisson-sampled Gaussian has its exact losses
    of_all = [(_of_all(event), count) for event, count in kinds]
    return min(found, _loss_epsilon(of_all, delta, interval))


def _loss_epsilon(
    kinds: list[tuple[Release, int]], delta: float, interval: float
) -> float:
    losses = (_losses(event, interval).self_compose(count) for event, count in kinds)
    total = reduce(lambda one, other: one.compose(other), losses)
    return float(total.get_epsilon_for_delta(delta))


@lru_cache(maxsize=64)
def _losses(event: Release, interval: float) -> "PrivacyLossDistribution":
    return event.losses(interval)
