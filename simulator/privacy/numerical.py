"""Composition by numbers: Renyi divergences and privacy loss distributions.

Both are dp-accounting's. Its traps are kept in here: it takes a second or two to import
(so nothing does before it is needed), `compose` changes the accountant, both return inf
at delta 0, and replace-one adjacency doubles the sensitivity in loss distributions but
not in Renyi divergences, whereas a `Release` is in units of the sensitivity claimed.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from ..config.extras import extra
from .releases import Gaussian, Laplace, Release

Kinds: TypeAlias = frozenset[tuple[Release, int]]


@lru_cache(maxsize=65536)
def renyi_epsilon(counts: Kinds, delta: float) -> float:
    """Computes epsilon by Renyi divergences; cached.

    Args:
        counts: Kinds of release, all protected, and how often each occurred, >= 1.
        delta: Failure probability, in (0, 1).
    """
    rdp = _library("rdp")
    divergences: Any = sum(count * _divergences(event) for event, count in counts)
    epsilon, _ = rdp.compute_epsilon(_orders(), divergences, delta)
    return float(epsilon)


@lru_cache(maxsize=1)
def _orders() -> Any:
    return _library("rdp").RdpAccountant().orders


@lru_cache(maxsize=4096)
def _divergences(event: Release) -> np.ndarray:
    dpa = _library()
    one, relation = _one(event), dpa.NeighboringRelation.ADD_OR_REMOVE_ONE
    if one is None:
        epsilon, orders = event.pure_epsilon, _orders()
        both = np.logaddexp(orders * epsilon, (1 - orders) * epsilon)
        return (both - np.logaddexp(0, epsilon)) / (orders - 1)
    if isinstance(one, dpa.SampledWithoutReplacementDpEvent):
        relation = dpa.NeighboringRelation.REPLACE_ONE
    return _library("rdp").RdpAccountant(neighboring_relation=relation).compose(one).rdp


@lru_cache(maxsize=65536)
def loss_epsilon(counts: Kinds, delta: float, interval: float) -> float:
    """Computes epsilon by privacy loss distributions; cached.

    Args:
        counts: Kinds of release, all protected and none a uniformly sampled Gaussian,
            and how often each occurred, >= 1.
        delta: Failure probability, in (0, 1).
        interval: Between losses on the grid, > 0.
    """
    total: Any = None
    for event, count in sorted(counts, key=repr):
        several = _distribution(event, interval).self_compose(count)
        total = several if total is None else total.compose(several)
    return float(total.get_epsilon_for_delta(delta))


@lru_cache(maxsize=64)
def _distribution(event: Release, interval: float) -> Any:
    privacy_loss_distribution = _library("pld.privacy_loss_distribution")
    if isinstance(event, Gaussian):
        # Add-or-remove takes the sensitivity as 1; replace-one would take it as 2.
        return privacy_loss_distribution.from_gaussian_mechanism(
            event.multiplier,
            value_discretization_interval=interval,
            sampling_prob=event.sampling_ratio,
        )
    if isinstance(event, Laplace) and event.sampling_ratio == 1:
        return privacy_loss_distribution.from_laplace_mechanism(
            1 / event.epsilon, value_discretization_interval=interval
        )
    common = _library("pld.common")
    pure = common.DifferentialPrivacyParameters(event.pure_epsilon, 0)
    return privacy_loss_distribution.from_privacy_parameters(pure, interval)


def _one(event: Release) -> Any:
    """Returns dp-accounting's event, None where it has none."""
    dpa = _library()
    if isinstance(event, Gaussian):
        noise = dpa.GaussianDpEvent(event.multiplier)
        if event.sampling_ratio == 1:
            return noise
        if event.sampling == "poisson":
            return dpa.PoissonSampledDpEvent(event.sampling_ratio, noise)
        # It asks for numbers of samples and uses their ratio.
        ratio = Fraction(event.sampling_ratio).limit_denominator(10**9)
        return dpa.SampledWithoutReplacementDpEvent(
            ratio.denominator, ratio.numerator, noise
        )
    if isinstance(event, Laplace) and event.sampling_ratio == 1:
        return dpa.LaplaceDpEvent(1 / event.epsilon)
    return None


def _library(module: str = "") -> Any:
    """Imports and returns dp-accounting, or a module of it."""
    name = ".".join(filter(None, ("dp_accounting", module)))
    return extra(name, "privacy", "an accountant rdp or pld")
