"""Sums over delays and the bound of Theorem 1 of VAFL, which step rules rest on."""

import math
from collections.abc import Sequence


def delay_tail(p_bar: float, rho: float, d: int) -> float:
    """Computes c_{m,d}, the sum of s * p_bar * rho**s over s >= d.

    Args:
        p_bar: Constant of Assumption 5, > 0.
        rho: Rate of Assumption 5, in (0, 1).
        d: commits, >= 1.

    Source: VAFL, appendix C.
    """
    return p_bar * (d * rho**d / (1 - rho) + rho ** (d + 1) / (1 - rho) ** 2)


def delay_second_moment(p_bar: float, rho: float) -> float:
    """Computes c_m, the sum of c_{m,d} over d >= 1, commits squared.

    It is E[tau^2] where P(tau = d) = p_bar * rho**d: for a geometric law of success
    probability r, (2 - r) / r^2.

    Args:
        p_bar: Constant of Assumption 5, > 0.
        rho: Rate of Assumption 5, in (0, 1).

    Source: VAFL, appendix C.
    """
    return p_bar * (rho / (1 - rho) ** 2 + 2 * rho**2 / (1 - rho) ** 3)


def bound_bounded_nonconvex(
    *,
    staleness_bound: int,
    smoothness: float,
    gap: float,
    activation: Sequence[float],
    horizon: int,
    c_eta: float,
    server_variance: float,
    client_variances: Sequence[float],
    gamma_1: float | None = None,
) -> float:
    """Bounds the mean squared gradient norm over a run, with the arithmetic corrected.

    Args:
        staleness_bound: D, commits.
        smoothness: L.
        gap: F at the start minus its lower bound.
        activation: q_m of every client.
        horizon: K, commits, >= 1.
        c_eta: Constant of the step size.
        server_variance: sigma_0^2.
        client_variances: sigma_m^2 of every client.
        gamma_1: Weight in the Lyapunov function; by default the largest, D L / 2.

    Source: VAFL, Theorem 1 with V-22.
    """
    gamma = staleness_bound * smoothness / 2 if gamma_1 is None else gamma_1
    noise = math.fsum(
        q * variance for q, variance in zip(activation, client_variances, strict=True)
    )
    slow = (
        4 * gap / c_eta
        + 4 * c_eta * smoothness * server_variance
        + c_eta * (8 * gamma + 4 * smoothness) * noise
    )
    fast = 16 * (staleness_bound + 1) * smoothness * gap
    return (fast / horizon + slow / math.sqrt(horizon)) / min(activation)
