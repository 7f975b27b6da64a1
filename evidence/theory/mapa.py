"""Closed forms of asynchronous learning with privacy: AUDP and MAPA.

Steps, variances and bounds are in the units of the gradient; staleness in commits. The
noise laws stand in `noise`.

Source: Li, Yang, Ren and Zhao, Asynchronous Federated Learning with Differential
    Privacy for Edge Intelligence; decisions (M-) are in evidence/pages/decisions.md.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

from . import noise


class MapaStage(NamedTuple):
    """One stage of MAPA.

    Attributes:
        sensitivity: Delta S.
        clip_bound: b Delta S / 2.
        variance: Delta_b.
        divisor: P.
        step_size: Step size gamma.
        length: T_s by equation 15, a real number of iterations.
        iterations: Duration in iterations, a whole number >= 1.
    """

    sensitivity: float
    clip_bound: float
    variance: float
    divisor: float
    step_size: float
    length: float
    iterations: int


def sensitivity(bound: float, batch: int) -> float:
    """Computes Delta S = 2 G / b of batches whose samples' gradients are bounded.

    Args:
        bound: G, largest norm of a sample's gradient.
        batch: Batch b, samples.

    Source: MAPA, Theorem 1.
    """
    return 2 * bound / batch


def initial_sensitivity(sigma: float, batch: int, delta: float) -> float:
    """Computes Delta S_0, from which the paper calls an iteration (epsilon, delta)-DP.

    A probability over data stands for that of the mechanism: delta is heuristic (M-15).

    Args:
        sigma: Standard deviation of a sample's gradient.
        batch: Batch b, samples.
        delta: Delta of that statement, in (0, 1).

    Source: MAPA, Theorem 3, equation 12.
    """
    return 2 * sigma / (batch * math.sqrt(-math.expm1(math.log1p(-delta) / 2)))


def total_variance(sigma: float, batch: int, noise_second_moment: float) -> float:
    """Computes Delta_b = sigma^2 / b + Delta_0, the variance of a contribution.

    Args:
        sigma: Standard deviation of a sample's gradient.
        batch: Batch b, samples.
        noise_second_moment: Delta_0; the paper's is 2 (Delta S / epsilon_0)^2, that of
            the law in use is `noise_moments` (M-02).

    Source: MAPA, section 1 and equation 8.
    """
    return sigma**2 / batch + noise_second_moment


def csgd_step(
    t: float, *, smoothness: float, sigma: float, radius: float, batch: int
) -> float:
    """Computes the step of centralised SGD, 1 / (L + sqrt(t + 1) sigma / (R sqrt(b))).

    Args:
        t: Iteration, from 1.
        smoothness: L.
        sigma: Standard deviation of a sample's gradient.
        radius: R, a bound on the distance to the minimum (M-11).
        batch: Batch b, samples.

    Source: MAPA, Table II.
    """
    return 1 / (smoothness + math.sqrt(t + 1) * sigma / (radius * math.sqrt(batch)))


def asgd_step(
    t: float,
    *,
    smoothness: float,
    sigma: float,
    radius: float,
    batch: int,
    max_staleness: int,
) -> float:
    """Computes the step of asynchronous SGD: CSGD's with L (tau_max + 1)^2 for L.

    Args:
        t: Iteration, from 1.
        smoothness: L.
        sigma: Standard deviation of a sample's gradient.
        radius: R, a bound on the distance to the minimum (M-11).
        batch: Batch b, samples.
        max_staleness: Largest staleness tau_max, commits; the paper takes K (M-08).

    Source: MAPA, Table II.
    """
    slowed = smoothness * (max_staleness + 1) ** 2
    return csgd_step(t, smoothness=slowed, sigma=sigma, radius=radius, batch=batch)


def audp_step(
    t: float,
    *,
    smoothness: float,
    variance: float,
    max_staleness: int,
    without_log: bool = False,
) -> float:
    """Computes AUDP's step 1 / (L (tau_max + 1) + sqrt(Delta_b + 1) sqrt(t)).

    Args:
        t: Iteration, from 1.
        smoothness: L.
        variance: Delta_b.
        max_staleness: Largest staleness tau_max, commits.
        without_log: Take (tau_max + 1)^2 + 1 for tau_max + 1, equation 11, by which
            the bound loses its log T (M-21).

    Source: MAPA, equations 10 and 11 and Table II.
    """
    longest = max_staleness + 1
    delayed = longest**2 + 1 if without_log else longest
    return 1 / (smoothness * delayed + math.sqrt(variance + 1) * math.sqrt(t))


def mapa_divisor(
    *, variance: float, sensitivity: float, theta: float, batch: int, max_staleness: int
) -> float:
    """Computes P = max(8 Delta_b / ((tau_max + 1) (b Delta S theta)^2), 1).

    Args:
        variance: Delta_b of the stage.
        sensitivity: Delta S of the stage.
        theta: Factor to the next sensitivity, in (0, 1).
        batch: Batch b, samples.
        max_staleness: Largest staleness tau_max, commits.

    Source: MAPA, equation 16 with equality, clamped as in Table II (M-06).
    """
    reduced = batch * sensitivity * theta
    return max(8 * variance / ((max_staleness + 1) * reduced**2), 1.0)


def mapa_step(divisor: float, *, smoothness: float, max_staleness: int) -> float:
    """Computes a stage's step 1 / (2 P L (tau_max + 1)); P = 1 is the largest of (13).

    Args:
        divisor: P, >= 1.
        smoothness: L.
        max_staleness: Largest staleness tau_max, commits.

    Source: MAPA, equation 13, Algorithm 1 (line 7) and Table II.
    """
    return 1 / (2 * divisor * smoothness * (max_staleness + 1))


def stage_length(
    divisor: float,
    *,
    smoothness: float,
    max_staleness: int,
    gap: float,
    variance: float,
) -> float:
    """Computes T_0, from which the first term of (14) is at most the second.

    Args:
        divisor: P, >= 1.
        smoothness: L.
        max_staleness: Largest staleness tau_max, commits.
        gap: f(x_1) - f(x*) (M-04).
        variance: Delta_b.

    Returns:
        A real number of iterations, often below 1 (M-05).

    Source: MAPA, equation 15.
    """
    return 4 * smoothness * gap * (divisor * (max_staleness + 1)) ** 2 / variance


def mapa_stages(
    *,
    initial: float,
    epsilon: float,
    theta: float,
    gap: float,
    smoothness: float,
    sigma: float,
    batch: int,
    max_staleness: int,
) -> Iterator[MapaStage]:
    """Yields the stages of MAPA with noise of second moment 2 (Delta S / epsilon)^2.

    With decisions M-05 (rounded up, at least 1), M-06 (P clamped everywhere) and M-07
    (Delta S falls by theta).

    Args:
        initial: Delta S of the first stage.
        epsilon: Least privacy level of a client.
        theta: Reduction ratio.
        gap: Gap f(x_1) - f(x*) of the objective.
        smoothness: L.
        sigma: Standard deviation of a sample's gradient.
        batch: Batch b, samples.
        max_staleness: Largest staleness tau_max, commits.

    Source: MAPA, Algorithm 1, lines 4-8, 15 and 16.
    """
    now = initial
    while True:
        added = noise.moments("radial_exponential", 1, now / epsilon).second
        variance = total_variance(sigma, batch, added)
        divisor = mapa_divisor(
            variance=variance,
            sensitivity=now,
            theta=theta,
            batch=batch,
            max_staleness=max_staleness,
        )
        step = mapa_step(divisor, smoothness=smoothness, max_staleness=max_staleness)
        length = stage_length(
            divisor,
            smoothness=smoothness,
            max_staleness=max_staleness,
            gap=gap,
            variance=variance,
        )
        iterations = max(1, math.ceil(length))
        yield MapaStage(
            now, batch * now / 2, variance, divisor, step, length, iterations
        )
        now *= theta


def theorem2(
    iterations: int,
    *,
    smoothness: float,
    bound: float,
    radius: float,
    variance: float,
    max_staleness: int,
    variant: Literal["printed", "tight"] = "printed",
) -> float:
    """Bounds E f(x_ave(T)) - f(x*) of AUDP with the step of equation 10.

    Args:
        iterations: T, >= 1; x_ave is the mean of x_1 ... x_T.
        smoothness: L.
        bound: G, on the norm of a sample's gradient.
        radius: R, on the distance of every x_t to x*.
        variance: Delta_b.
        max_staleness: Largest staleness tau_max, commits.
        variant: `printed`, or `tight` with R^2 / gamma_1 over T and not over sqrt(T),
            as summation by parts has it (M-26).

    Source: MAPA, Theorem 2.
    """
    T = iterations
    first = audp_step(
        1, smoothness=smoothness, variance=variance, max_staleness=max_staleness
    )
    late = radius * bound * max_staleness / T
    drift = smoothness * (variance + bound**2) / (2 * (variance + 1))
    drift *= (max_staleness + 1) ** 2 * math.log(T) / T
    spread = (4 + radius**2) * math.sqrt(variance + 1) / (2 * math.sqrt(T))
    start = radius**2 / first / 2
    return late + drift + spread + start / (math.sqrt(T) if variant == "printed" else T)


def theorem4(
    iterations: int, *, step_size: float, smoothness: float, gap: float, variance: float
) -> float:
    """Bounds the mean of E |grad f(x_t)|^2 over t = 1 ... T with a constant step.

    2 (f(x_1) - f(x*)) / (T gamma) + 2 Delta_b L gamma; its limit is the ball's size.

    Args:
        iterations: T, >= 1.
        step_size: Step size gamma, at most 1 / (2 L (tau_max + 1)) by equation 13.
        smoothness: L.
        gap: Gap f(x_1) - f(x*) of the objective.
        variance: Delta_b.

    Source: MAPA, Theorem 4, equation 14.
    """
    return 2 * gap / (iterations * step_size) + 2 * variance * smoothness * step_size
