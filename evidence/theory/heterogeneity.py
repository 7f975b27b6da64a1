"""Closed forms of workers that are not equally fast: throughput, times, staleness.

Mini-batches of K workers, where all wait for the slowest in every round, or none
waits. Communication takes no time.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 5; decisions (A-) are in
    evidence/pages/decisions.md.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float

Slow = Literal["per_minibatch", "one_a_round"]
"""How "in each iteration a random learner is slow" is read (A-12): each mini-batch with
chance 1 / K, or exactly one of the K mini-batches of every synchronous round."""


class Throughput(NamedTuple):
    """Block updates per second: of rounds, and of workers that do not wait."""

    synchronous: float
    asynchronous: float

    @property
    def ratio(self) -> float:
        """How many times the asynchronous updates are faster."""
        return self.asynchronous / self.synchronous


class ConstantStaleness(NamedTuple):
    """Staleness of every worker where mini-batches take constant times.

    Attributes:
        shares: Shares p_k, of all mini-batches.
        mean: Mean staleness of each worker, over a long run.
        least: Lower bound, from each worker's second mini-batch on.
        most: Upper bound of the time.
    """

    shares: Float[np.ndarray, " K"]
    mean: Float[np.ndarray, " K"]
    least: Float[np.ndarray, " K"]
    most: Float[np.ndarray, " K"]

    @property
    def overall(self) -> float:
        """Mean over all mini-batches: K - 1, whatever the times."""
        return float(self.shares @ self.mean)


def constant_throughput(times_s: Sequence[float]) -> Throughput:
    """Computes mini-batches per second where each worker's take a constant time.

    Args:
        times_s: Duration of a mini-batch of each worker, seconds, > 0; in Case II one
            is 10 times as long as the others.

    Returns:
        K over the longest, and the sum of the workers' rates; without communication.

    Raises:
        ValueError: There is no time, or one is not > 0.

    Source: A(DP)2SGD, section 5, Case II.
    """
    times = _times(times_s)
    return Throughput(times.size / float(times.max()), math.fsum(1 / times))


def random_slow_throughput(
    num_workers: int, factor: float, slow: Slow, compute_s: float = 1.0
) -> Throughput:
    """Computes mini-batches per second where random ones are slow (Case I).

    Asynchronous workers have slow ones with chance 1 / K by either reading, and
    1 / (1 + (f - 1) / K) mini-batches per compute time.

    Args:
        num_workers: K, >= 1.
        factor: f, by which a slow one takes longer, >= 1.
        slow: `one_a_round` makes every round slow; `per_minibatch` only those with a
            slow one, a share of 1 - (1 - 1 / K)^K, so that the ratio is smaller.
        compute_s: Duration of a mini-batch that is not slow, seconds, > 0.

    Returns:
        Long-run rates, without communication.

    Raises:
        ValueError: An argument is out of its range.

    Source: A(DP)2SGD, section 5, Case I; A-12.
    """
    check_at_least(num_workers=(num_workers, 1), factor=(factor, 1))
    check_positive(compute_s=compute_s)
    if slow not in get_args(Slow):
        raise ValueError(
            f"slow must be one of {', '.join(get_args(Slow))}, got {slow!r}; "
            "see A-12 for their difference"
        )
    chance = 1 / num_workers
    some = 1.0 if slow == "one_a_round" else 1 - (1 - chance) ** num_workers
    longest = compute_s * (1 + (factor - 1) * some)
    mean = compute_s * (1 + (factor - 1) * chance)
    return Throughput(num_workers / longest, num_workers / mean)


def constant_staleness(times_s: Sequence[float]) -> ConstantStaleness:
    """Computes every worker's staleness where mini-batches take constant times.

    While worker k computes for c_k, worker j completes c_k / c_j mini-batches, rounded
    up or down: exactly as many where that is whole, ties being broken alike each time.
    A worker reads what its previous step left, and its own steps do not age it.

    Args:
        times_s: Times c_k of each worker, seconds, > 0.

    Returns:
        Mean c_k times the sum of the others' rates, and sums of the rounded numbers.
        With equal times all are K - 1.

    Raises:
        ValueError: There is no time, or one is not > 0.

    Source: counting of completions; A(DP)2SGD, section 5, Case II.
    """
    times = _times(times_s)
    done = times[:, None] / times[None, :]
    near = np.round(done)
    done = np.where(np.abs(done - near) <= 1e-9 * near, near, done)
    np.fill_diagonal(done, 0)
    rates = 1 / times
    least, most = np.floor(done).sum(axis=1), np.ceil(done).sum(axis=1)
    return ConstantStaleness(rates / rates.sum(), done.sum(axis=1), least, most)


def _times(times_s: Sequence[float]) -> Float[np.ndarray, " K"]:
    times = np.asarray(times_s, dtype=float)
    known = (times > 0) & (times < math.inf)
    if times.ndim != 1 or not times.size or not known.all():
        raise ValueError(
            f"times_s must be > 0 and finite, one per worker, got {times.tolist()}; "
            "give seconds"
        )
    return times


def check_at_least(**bounds: tuple[float, float]) -> None:
    """Raises ValueError for a value below its bound, or not finite."""
    for name, (value, least) in bounds.items():
        if not least <= value < math.inf:
            raise ValueError(
                f"{name} must be >= {least} and finite, got {value}; raise it"
            )


def check_positive(**values: float) -> None:
    """Raises ValueError for a value that is not within (0, inf)."""
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(
                f"{name} must be > 0 and finite, got {value}; give another"
            )
