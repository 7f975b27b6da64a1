"""Closed forms of A(DP)2SGD: when its convergence theorem holds, and its bound.

Step sizes are for the sum of a batch's gradients, as in Algorithm 1, and so is the
noise. T and staleness count mini-batches of all workers together.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 3 and appendix; decisions
    (A-) are in evidence/pages/decisions.md.
"""

import math
from typing import NamedTuple

from .heterogeneity import check_at_least, check_positive


class Theorem1Constants(NamedTuple):
    """C_1, C_2 and C_3 of Theorem 1, which needs c1 > 0, c2 >= 0 and c3 <= 1.

    Attributes:
        c1: 1 minus the staleness and disagreement that a step feeds back.
        c2: Constant of the gradients' norms, in units of eta B / K.
        c3: Constant of the disagreement.
    """

    c1: float
    c2: float
    c3: float

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the conditions that fail."""
        holds = {"c1": self.c1 > 0, "c2": self.c2 >= 0, "c3": self.c3 <= 1}
        return tuple(name for name, held in holds.items() if not held)


class Threshold(NamedTuple):
    """The least T of Proposition 1, as the largest of four terms times L^2 K^2.

    Attributes:
        staleness: 192 (tau (K - 1) / K + rho_bar).
        averaging: 1024 K^2 rho_bar^2.
        delay: 64 tau^2 / K^2.
        both: The fourth term.
    """

    staleness: float
    averaging: float
    delay: float
    both: float

    @property
    def iterations(self) -> float:
        """The least T, mini-batches of all workers together."""
        return max(self)


def theorem1_constants(
    *,
    num_workers: int,
    step_size: float,
    batch: int,
    smoothness: float,
    staleness: float,
    rho_bar: float,
) -> Theorem1Constants:
    """Computes the three constants whose signs Theorem 1 is conditional on.

    Args:
        num_workers: K, >= 1.
        step_size: Step size eta, > 0, for the sum over a batch.
        batch: B, >= 1.
        smoothness: L, > 0.
        staleness: Largest staleness tau, commits, >= 0.
        rho_bar: Value of `pairings.rho_bar`, >= 0.

    Returns:
        The formulas; where C_1 <= 0 the others mean nothing.

    Raises:
        ValueError: An argument is out of its range.

    Source: A(DP)2SGD, Theorem 1.
    """
    check_at_least(
        num_workers=(num_workers, 1), batch=(batch, 1), staleness=(staleness, 0)
    )
    check_at_least(rho_bar=(rho_bar, 0))
    check_positive(step_size=step_size, smoothness=smoothness)
    K, L, tau = num_workers, smoothness, staleness
    b = step_size * batch
    lag = tau * (K - 1) / K + rho_bar
    c1 = 1 - 24 * (b * L) ** 2 * lag
    if c1 == 0:
        return Theorem1Constants(0.0, -math.inf, math.inf)
    fed = b * L**2 / K + 6 * b**2 * L**3 / K**2 + 12 * b**3 * L**4 * tau**2 / K**3
    plain = b / (2 * K) - b**2 * L / K**2 - 2 * b**3 * L**2 * tau**2 / K**3
    c2 = plain - fed * 4 * b**2 * lag / c1
    grown = 6 * (b * L) ** 2 + b * K * L + 12 * (b * L) ** 3 * tau**2 / K
    c3 = 0.5 + b * L * tau**2 / K + grown * 2 * rho_bar / c1
    return Theorem1Constants(c1, c2, c3)


def theorem1_bound(
    iterations: int,
    *,
    num_workers: int,
    step_size: float,
    batch: int,
    smoothness: float,
    gap: float,
    within: float,
    across: float,
    dimension: int,
    sigma: float,
) -> float:
    """Bounds the mean of E |grad F(theta^t)|^2 over T iterations.

    Holds where `theorem1_constants(...).failed` is empty.

    Args:
        iterations: T, >= 1.
        num_workers: K, >= 1.
        step_size: Step size eta, > 0, for the sum over a batch.
        batch: B, >= 1.
        smoothness: L, > 0.
        gap: F(w^0) - F*, >= 0.
        within: Variance varsigma^2 of a sample's gradient within a worker, >= 0.
        across: Variance upsilon^2 of the workers' gradients, >= 0.
        dimension: Dimension d, >= 1.
        sigma: Standard deviation of the noise on the sum, >= 0.

    Raises:
        ValueError: An argument is out of its range.

    Source: A(DP)2SGD, Theorem 1.
    """
    check_at_least(
        iterations=(iterations, 1), num_workers=(num_workers, 1), batch=(batch, 1)
    )
    check_at_least(
        gap=(gap, 0), within=(within, 0), across=(across, 0), sigma=(sigma, 0)
    )
    check_at_least(dimension=(dimension, 1))
    check_positive(step_size=step_size, smoothness=smoothness)
    noise = within * batch + 6 * across * batch**2 + dimension * sigma**2
    start = 2 * gap * num_workers / (step_size * iterations * batch)
    return start + 2 * step_size * smoothness * noise / (batch * num_workers)


def proposition1_threshold(
    *, num_workers: int, smoothness: float, staleness: float, rho_bar: float
) -> Threshold:
    """Computes the least T for which Proposition 1 holds.

    Args:
        num_workers: K, >= 2.
        smoothness: L, > 0.
        staleness: Largest staleness tau, commits, >= 0.
        rho_bar: Value of `pairings.rho_bar`, >= 0.

    Raises:
        ValueError: An argument is out of its range.

    Source: A(DP)2SGD, Proposition 1; A-17.
    """
    check_at_least(
        num_workers=(num_workers, 2), staleness=(staleness, 0), rho_bar=(rho_bar, 0)
    )
    check_positive(smoothness=smoothness)
    K, tau = num_workers, staleness
    both = (
        math.sqrt(K - 1) / K ** (1 / 6) * (8 * math.sqrt(6) * tau ** (2 / 3) + 8) ** 2
    )
    terms = (
        192 * (tau * (K - 1) / K + rho_bar),
        1024 * (K * rho_bar) ** 2,
        64 * (tau / K) ** 2,
        both * (tau + rho_bar * K / (K - 1)) ** (2 / 3),
    )
    return Threshold(*((smoothness * K) ** 2 * term for term in terms))


def proposition1_step(iterations: int, *, num_workers: int, batch: int) -> float:
    """Computes Proposition 1's step size K / (B sqrt(T)), for the sum over a batch.

    Args:
        iterations: T, >= 1.
        num_workers: K, >= 1.
        batch: B, >= 1.

    Raises:
        ValueError: An argument is out of its range.

    Source: A(DP)2SGD, Proposition 1.
    """
    check_at_least(
        iterations=(iterations, 1), num_workers=(num_workers, 1), batch=(batch, 1)
    )
    return num_workers / (batch * math.sqrt(iterations))


def proposition1_bound(
    iterations: int,
    *,
    batch: int,
    smoothness: float,
    gap: float,
    within: float,
    across: float,
    dimension: int,
    sigma: float,
) -> float:
    """Bounds the mean of E |grad F(theta^t)|^2 at Proposition 1's step size.

    Holds where T is at least `proposition1_threshold(...).iterations`.

    Args:
        iterations: T, >= 1.
        batch: B, >= 1.
        smoothness: L, > 0.
        gap: F(w^0) - F*, >= 0.
        within: Variance varsigma^2 of a sample's gradient within a worker, >= 0.
        across: Variance upsilon^2 of the workers' gradients, >= 0.
        dimension: Dimension d, >= 1.
        sigma: Standard deviation of the noise on the sum, >= 0; its share, the cost of
            privacy, is 2 L d sigma^2 / (B^2 sqrt(T)).

    Raises:
        ValueError: An argument is out of its range.

    Source: A(DP)2SGD, Proposition 1.
    """
    return theorem1_bound(
        iterations,
        num_workers=1,  # K cancels
        step_size=proposition1_step(iterations, num_workers=1, batch=batch),
        batch=batch,
        smoothness=smoothness,
        gap=gap,
        within=within,
        across=across,
        dimension=dimension,
        sigma=sigma,
    )


def accumulated_noise(
    iterations: int, *, num_workers: int, step_size: float, sigma: float
) -> float:
    """Computes the standard deviation of the noise in a weight of the average model.

    That of K independent noises averaged in T / K synchronous rounds, and of T noises
    each of which moves the average by a K-th. Gradients do not react to it here.

    Args:
        iterations: T, >= 0.
        num_workers: K, >= 1.
        step_size: Step size of the noisy gradient, > 0.
        sigma: Standard deviation of the noise on that gradient, >= 0.

    Raises:
        ValueError: An argument is out of its range.

    Source: A(DP)2SGD, section 5; A-22.
    """
    check_at_least(
        iterations=(iterations, 0), num_workers=(num_workers, 1), sigma=(sigma, 0)
    )
    check_positive(step_size=step_size)
    return step_size * sigma * math.sqrt(iterations) / num_workers
