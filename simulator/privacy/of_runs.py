"""What one message of each client releases, from a run's configuration. No JAX here.

A release is *formal* where the epsilon is proved for the client's own data; else it is
the paper's own accounting, and `why` says what is missing. Adjacent data sets differ by
one replaced sample of a client (all of its samples, where whole contributions are
clipped). No release counts on others, on who is asked, or on when a client sends.

How often a sample can be in a batch decides what its replacement moves:

============  ===========================  ============================================
sampling      occurrences of a sample      what follows
============  ===========================  ============================================
distinct      0 or 1, with chance b / n    amplified by the draw (federated methods)
shuffled      0 or 1; 2 where b does not   twice the sensitivity where b does not
              divide n and epochs meet     divide n; no amplification
replacement   0 to b                       pure: Balle, Barthe and Gaboardi, Theorem 10;
                                           Gaussian: b times the sensitivity
============  ===========================  ============================================
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from simulator.config.errors import ScenarioError
from simulator.privacy import of_gossip
from simulator.privacy.accountants import make
from simulator.privacy.budgets import calibrate
from simulator.privacy.releases import Gaussian, Pure, Release, Sampling
from simulator.scenario.algorithms import Algorithm
from simulator.scenario.decentralised import Adp2sgd
from simulator.scenario.edge_cloud import Audp, Mapa
from simulator.scenario.federated import Mechanism

NAMES = {
    "spherical_laplace": "spherical Laplace",
    "radial_exponential": "radial exponential",
    "laplace": "Laplace",
    "gaussian": "Gaussian",
}


@dataclass(frozen=True)
class Guarantee:
    """What one message of a client releases.

    Attributes:
        release: for the accountants.
        formal: whether it is proved, or a paper's own accounting.
        why: a sentence: what the proof is, or what it lacks.
        mechanism: law of the noise and what is clipped.
    """

    release: Release
    formal: bool
    why: str
    mechanism: str


def guarantees(
    algorithm: Algorithm, num_samples: Sequence[int], batch: int, num_weights: int
) -> tuple[Guarantee, ...]:
    """Returns what one message of each client releases; nothing without noise.

    Args:
        algorithm: its configuration.
        num_samples: n of each client.
        batch: b, samples of a local step.
        num_weights: numbers of a message.

    Raises:
        ScenarioError: not one privacy level for each client.
        UserError: a budget cannot be reached.
    """
    if isinstance(algorithm, Adp2sgd):
        return _of_gossip(algorithm, num_samples, batch)
    mechanism = getattr(algorithm, "mechanism", None)
    if isinstance(mechanism, Mechanism):
        ratio = batch / min(num_samples) if mechanism.clip == "sample" else 1.0
        multiplier = multiplier_of(mechanism, ratio)
        return tuple(
            _of_mechanism(algorithm, mechanism, multiplier, n, batch)
            for n in num_samples
        )
    if not isinstance(algorithm, Audp | Mapa):
        return ()
    epsilon, clients = algorithm.epsilon, len(num_samples)
    if isinstance(epsilon, tuple) and len(epsilon) != clients:
        raise ScenarioError(
            f"algorithm.epsilon must have one entry per client ({clients}), got "
            f"{len(epsilon)}; make it as long, or give one number"
        )
    return tuple(
        _of_edge_cloud(algorithm, float(e), n, batch, num_weights)
        for e, n in zip(np.broadcast_to(epsilon, clients), num_samples, strict=True)
    )


def described(guarantees: Sequence[Guarantee]) -> dict[str, Any]:
    """Returns what noise clients add, whether all of it is proved, and why.

    Args:
        guarantees: of all clients, at least one.
    """
    unproved = [guarantee for guarantee in guarantees if not guarantee.formal]
    first = (unproved or list(guarantees))[0]
    return {"mechanism": first.mechanism, "formal": not unproved, "why": first.why}


def multiplier_of(
    mechanism: Mechanism, sampling_ratio: float, sampling: Sampling = "uniform"
) -> float:
    """Returns the noise multiplier that a mechanism states or its budget needs.

    Args:
        mechanism: of a federated method.
        sampling_ratio: of the client that draws the largest share, in (0, 1].
        sampling: how distinct samples are drawn.

    Returns:
        Noise scale over sensitivity, >= 0. A budget with RDP and a ratio below 1 takes
        about ten seconds; cached.

    Raises:
        UserError: no noise is enough, or the accountant has no such release.
    """
    if mechanism.multiplier is not None:
        return mechanism.multiplier
    budget = mechanism.budget
    assert budget is not None
    numbers = budget.epsilon, budget.delta, budget.releases
    return _calibrated(
        *numbers, budget.accountant, mechanism.law, sampling_ratio, sampling
    )


@lru_cache(maxsize=256)
def _calibrated(
    epsilon: float,
    delta: float,
    releases: int,
    accountant: str,
    law: str,
    sampling_ratio: float,
    sampling: Sampling,
) -> float:
    event: Any = partial(Pure.of_multiplier, sampling_ratio=sampling_ratio)
    if law == "gaussian":
        event = partial(Gaussian, sampling_ratio=sampling_ratio, sampling=sampling)
    return calibrate(epsilon, delta, releases, make(accountant), event)


def _of_edge_cloud(
    config: Audp | Mapa, epsilon: float, n: int, batch: int, num_weights: int
) -> Guarantee:
    """Returns what a message of AUDP or MAPA releases.

    Eq. 12's delta only chooses the sensitivity; clipping every sample at b / 2 of it
    makes it one, whatever that delta means (M-15).
    """
    lacks = _lacking(config)
    if config.clip == "mean":
        lacks.append(
            f"the clipped means of two batches can differ by b = {batch} times the "
            f"stated sensitivity; only clip: sample bounds it (M-03)"
        )
    if config.noised != "all":
        lacks.append("only the first layer's gradient has noise (M-14)")
    if config.noise == "radial_exponential" and num_weights > 1:
        lacks.append(
            f"an exponential radius in {num_weights} dimensions is private at no "
            f"epsilon (M-01)"
        )
    mechanism = f"{NAMES[config.noise]}, clip: {config.clip}"
    if lacks:
        why = "the paper's epsilon of an iteration: " + "; ".join(lacks)
        return Guarantee(Pure(epsilon), False, why, mechanism)
    why = "the noise is for the l2 sensitivity of clipped samples"
    if config.noise == "laplace":
        epsilon *= math.sqrt(num_weights)
        why = (
            f"independent Laplace noise for an l2 sensitivity costs sqrt(d) = "
            f"{math.sqrt(num_weights):.4g} times the stated epsilon (M-01)"
        )
    spent = _pure(epsilon, n, batch, config.sampling)
    return Guarantee(Pure(spent), True, why + _repeats(batch, n, config), mechanism)


def _of_gossip(
    config: Adp2sgd, num_samples: Sequence[int], batch: int
) -> tuple[Guarantee, ...]:
    """Returns what a gradient of each worker of A(DP)2SGD releases."""
    noise = config.noise
    sigma = of_gossip.sigma_of(noise, num_samples, batch)
    name = f"{NAMES['gaussian']} on the {noise.on}, clip: {noise.clip}"
    lacks = of_gossip.lacking(noise) + _lacking(config)
    why = "the noise is for the l2 sensitivity of clipped samples"
    return tuple(
        Guarantee(
            release=_repeated(
                of_gossip.release_of(noise, sigma, n, batch), config, n, batch
            ),
            formal=not lacks,
            why=(f"{why}, but {'; '.join(lacks)}" if lacks else why)
            + _repeats(batch, n, config),
            mechanism=name,
        )
        for n in num_samples
    )


def _repeated(release: Gaussian, config: Algorithm, n: int, batch: int) -> Gaussian:
    """Returns a release of a batch in which a sample may be several times."""
    if config.sampling == "distinct":
        return release
    times = _most_occurrences(batch, n, config.sampling)
    return Gaussian(release.multiplier / times)


def _of_mechanism(
    config: Algorithm, mechanism: Mechanism, multiplier: float, n: int, batch: int
) -> Guarantee:
    """Returns what a message of a federated method releases."""
    name = f"{NAMES[mechanism.law]}, clip: {mechanism.clip}"
    lacks = _lacking(config)
    why = "the noise is for the l2 sensitivity of clipped samples"
    gaussian, ratio, more = mechanism.law == "gaussian", 1.0, ""
    release: Release
    if mechanism.clip == "contribution":
        why = "the noise is for the replacement of all of a client's samples"
        release = Gaussian(multiplier) if gaussian else Pure.of_multiplier(multiplier)
    else:
        if config.sampling == "distinct" and config.samples != "common":
            ratio = min(1.0, batch / n)
        times = _most_occurrences(batch, n, config.sampling)
        if gaussian:
            release = Gaussian(multiplier / times, ratio)
        else:
            epsilon = Pure.of_multiplier(multiplier).epsilon
            release = Pure(_pure(epsilon, n, batch, config.sampling), ratio)
        more = _repeats(batch, n, config)
    if lacks:
        return Guarantee(release, False, why + more + ", but " + "; ".join(lacks), name)
    return Guarantee(release, True, why + more, name)


def _lacking(config: Algorithm) -> list[str]:
    """Returns what no law of the noise can make good."""
    lacks = []
    measured = sorted(set(_measured(config.model_dump(mode="json"))))
    if measured:
        lacks.append(f"{', '.join(measured)} measured on the data without noise")
    if config.samples == "common":
        lacks.append("all clients send of the same samples")
    return lacks


def _measured(tree: Any, key: str = "") -> list[str]:
    """Returns the entries of a configuration that are computed from the data."""
    if isinstance(tree, dict):
        return [found for k, v in tree.items() for found in _measured(v, k)]
    return [key] if tree == "data" else []


def _most_occurrences(batch: int, n: int, sampling: str) -> int:
    """Returns how often a sample can be in one batch."""
    if sampling == "replacement":
        return batch
    return 2 if sampling == "shuffled" and n % batch else 1


def _repeats(batch: int, n: int, config: Algorithm) -> str:
    """Returns what is to be said of samples that are more than once in a batch."""
    times = _most_occurrences(batch, n, config.sampling)
    if times == 1:
        return ""
    return (
        f", for batches in which a sample may be {times} times (sampling: "
        f"{config.sampling})"
    )


def _pure(epsilon: float, n: int, batch: int, sampling: str) -> float:
    """Returns the epsilon of a message whose batch may hold a sample several times.

    It is `epsilon` where no sample does, and never less: nothing is claimed for the
    draw here.

    Source: with replacement, Balle, Barthe and Gaboardi (2018), Theorem 10: replacing
    a sample that is j <= b times in a batch costs at most b epsilon, and it is in none
    with probability (1 - 1/n)^b.
    """
    if sampling != "replacement" or batch == 1 or epsilon == math.inf:
        return epsilon * _most_occurrences(batch, n, sampling)
    absent = batch * math.log1p(-1 / n) if n > 1 else -math.inf
    there = math.log(-math.expm1(absent))
    return max(epsilon, float(np.logaddexp(absent, there + batch * epsilon)))
