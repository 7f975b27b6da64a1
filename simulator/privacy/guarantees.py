"""The release of one message of each client, by its noise and its batches. No JAX.

A release is *formal* where the epsilon is proved for the client's own data; else it is
the paper's own accounting, and `why` names the gap. Adjacent data sets differ by one
replaced sample of a client (all of its samples, where whole contributions are clipped).
No release relies on others, on client selection, or on sending times.

The possible occurrences of a sample in a batch decide the effect of its replacement:

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
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from .budgets import calibrate
from .parts import make
from .releases import (
    CONTRIBUTION,
    SAMPLE,
    Gaussian,
    Guarantee,
    Pure,
    Release,
    Sampling,
)

if TYPE_CHECKING:
    from ..engine.algorithm import Algorithm

NAMES = {
    "spherical_laplace": "spherical Laplace",
    "radial_exponential": "radial exponential",
    "laplace": "Laplace",
    "gaussian": "Gaussian",
}


def described(guarantees: Sequence[Guarantee]) -> dict[str, object]:
    """Returns the clients' noise, its protected unit, whether it is proved, and why."""
    unproved = [guarantee for guarantee in guarantees if not guarantee.formal]
    first = (unproved or list(guarantees))[0]
    return {
        "mechanism": first.mechanism,
        "protects": first.protects,
        "formal": not unproved,
        "why": first.why,
    }


@lru_cache(maxsize=256)
def calibrated(
    epsilon: float,
    delta: float,
    releases: int,
    accountant: str,
    law: str,
    sampling_ratio: float,
    sampling: Sampling,
) -> float:
    """Returns the noise multiplier that a budget needs.

    Returns:
        Noise scale over sensitivity, >= 0. With RDP and a ratio below 1 this takes
        about ten seconds; cached.

    Raises:
        UserError: no noise is enough, or the accountant has no such release.
    """

    def event(multiplier: float) -> Release:
        if law == "gaussian":
            return Gaussian(multiplier, sampling_ratio, sampling)
        return Pure.of_multiplier(multiplier, sampling_ratio)

    return calibrate(epsilon, delta, releases, make(accountant), event)


def repeated(release: Gaussian, sampling: str, n: int, batch: int) -> Gaussian:
    """Returns a release of a batch in which a sample may be several times."""
    if sampling == "distinct":
        return release
    return Gaussian(release.multiplier / most_occurrences(batch, n, sampling))


def of_clipped(
    law: str,
    clip: str,
    multiplier: float,
    algorithm: "Algorithm",
    num_samples: Sequence[int],
    batch: int,
) -> tuple[Guarantee, ...]:
    """Returns each client's release of a message that was clipped before it got noise.

    Args:
        law: Law of the noise, `gaussian` or `spherical_laplace`.
        clip: `sample` or `contribution`.
        multiplier: Noise scale over sensitivity, >= 0.
        algorithm: Algorithm, for the way in which batches are drawn.
        num_samples: n of each client.
        batch: b, samples of a local step.
    """
    lacks, sampling = lacking(algorithm), algorithm.sampling
    end = ", but " + "; ".join(lacks) if lacks else ""
    gaussian, whole = law == "gaussian", clip == "contribution"
    protects = CONTRIBUTION if whole else SAMPLE
    why = "the noise is for the l2 sensitivity of clipped samples"
    if whole:
        why = "the noise is for the replacement of all of a client's samples"
    found = []
    for n in num_samples:
        ratio, more = 1.0, "" if whole else repeats(batch, n, sampling)
        if sampling == "distinct" and algorithm.samples != "common" and not whole:
            ratio = min(1.0, batch / n)
        times = 1 if whole else most_occurrences(batch, n, sampling)
        if gaussian:
            release: Release = Gaussian(multiplier / times, ratio)
        else:
            release = Pure.of_multiplier(multiplier)
            if not whole:
                release = Pure(pure(release.epsilon, n, batch, sampling), ratio)
        name = f"{NAMES[law]}, clip: {clip}"
        found.append(Guarantee(release, not lacks, why + more + end, name, protects))
    return tuple(found)


def lacking(algorithm: "Algorithm") -> list[str]:
    """Returns the gaps in a proof that no law of the noise can close."""
    lacks = []
    if measured := sorted(set(_measured(algorithm.model_dump(mode="json")))):
        lacks.append(f"{', '.join(measured)} measured on the data without noise")
    if algorithm.samples == "common":
        lacks.append("all clients send of the same samples")
    return lacks


def _measured(tree: object, key: str = "") -> list[str]:
    """Returns the entries of a configuration that are computed from the data."""
    if isinstance(tree, dict):
        return [found for k, v in tree.items() for found in _measured(v, k)]
    if isinstance(tree, list):
        return [found for each in tree for found in _measured(each, key)]
    return [key] if tree == "data" else []


def most_occurrences(batch: int, n: int, sampling: str) -> int:
    """Returns how often a sample can be in one batch."""
    if sampling == "replacement":
        return batch
    return 2 if sampling == "shuffled" and n % batch else 1


def repeats(batch: int, n: int, sampling: str) -> str:
    """Returns a remark on samples that are more than once in a batch."""
    times = most_occurrences(batch, n, sampling)
    if times == 1:
        return ""
    return (
        f", for batches in which a sample may be {times} times (sampling: {sampling})"
    )


def pure(epsilon: float, n: int, batch: int, sampling: str) -> float:
    """Returns the epsilon of a message whose batch may hold a sample several times.

    It is `epsilon` where no sample does, and never less: nothing is claimed for the
    draw here.

    Source: sampling with replacement by Balle, Barthe and Gaboardi (2018), Theorem 10:
    replacing a sample that is j <= b times in a batch costs at most b epsilon, and it
    is in none with probability (1 - 1/n)^b.
    """
    if sampling != "replacement" or batch == 1 or epsilon == math.inf:
        return epsilon * most_occurrences(batch, n, sampling)
    absent = batch * math.log1p(-1 / n) if n > 1 else -math.inf
    there = math.log(-math.expm1(absent))
    return max(epsilon, float(np.logaddexp(absent, there + batch * epsilon)))
