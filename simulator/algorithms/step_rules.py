"""Step sizes of VAFL's theorems, resolved to schedules; and the constants they need.

Plain Python, so that a scenario can be checked without JAX.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..config.errors import ScenarioError
from ..learning.constants import Constants, measured
from .part import (
    BoundedNonconvexStep,
    BoundedStronglyConvexStep,
    ConstantStep,
    InverseRootStep,
    PiecewiseStep,
    StepSize,
    StochasticNonconvexStep,
    StochasticStronglyConvexStep,
    WarmupStep,
)


class Schedule(NamedTuple):
    """A step size scale * (k + offset) ** -power at every commit.

    Attributes:
        scale: Scale of the step sizes, >= 0.
        offset: K_0, commits, > 0.
        power: 0 (constant), 1 (falling like 1/k) or 1/2.
    """

    scale: Any
    offset: Any
    power: Any

    def at(self, commits: Any) -> Any:
        """Returns the step size once `commits` were made, numbers or arrays, >= 0."""
        return self.scale * (commits + self.offset) ** -self.power


class Steps(NamedTuple):
    """Step sizes that are constant between some commits.

    Attributes:
        values: one more than there are bounds, >= 0.
        bounds: commits from which the next value holds, rising.
    """

    values: Any
    bounds: Any

    def at(self, commits: Any) -> Any:
        """Returns the step size once `commits` were made, >= 0."""
        return self.values[(commits >= self.bounds).sum()]


def resolve(
    rule: StepSize, constants: Constants
) -> tuple[Schedule | Steps, Schedule | Steps]:
    """Resolves a step size to schedules of the clients and of the server.

    A client's step is the server's divided by t where a theorem has eta_0 = t eta_m
    (Theorems 7 and 9); for strongly convex objectives the two are equal.

    Args:
        rule: a number or a rule.
        constants: the problem's, for rules that take them from the data.

    Returns:
        The clients' schedule and the server's.

    Raises:
        ScenarioError: a constant is needed and not known, or the rule's numbers cannot
            be probabilities or second moments.

    Source: VAFL, Theorems 1-4 and 7-10, by their proofs (V-21).
    """
    if isinstance(rule, ConstantStep):
        return _both(_constant(rule.value))
    if isinstance(rule, InverseRootStep):
        return _both(_inverse_root(rule, constants.num_clients))
    if isinstance(rule, PiecewiseStep):
        return _both(_steps(rule.values, rule.epochs, constants))
    if isinstance(rule, WarmupStep):
        return _both(_warmup(rule, constants))
    if not isinstance(
        rule,
        BoundedNonconvexStep
        | BoundedStronglyConvexStep
        | StochasticNonconvexStep
        | StochasticStronglyConvexStep,
    ):
        return _both(_constant(rule))
    smoothness = _known("smoothness", rule.smoothness, constants.smoothness)
    if isinstance(rule, BoundedNonconvexStep):
        longest = 1.0 + rule.staleness_bound
        return _nonconvex(rule, longest, smoothness)
    if isinstance(rule, StochasticNonconvexStep):
        longest = 1.0 + _root_of_largest(rule.delay_second_moments)
        return _nonconvex(rule, longest, smoothness)
    convexity = _known(
        "strong_convexity", rule.strong_convexity, constants.strong_convexity
    )
    _check_activation(rule.activation)
    if isinstance(rule, BoundedStronglyConvexStep):
        return _both(_bounded_strongly_convex(rule, smoothness, convexity))
    return _both(_stochastic_strongly_convex(rule, smoothness, convexity))


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


def geometric_refresh(second_moment: float) -> float:
    """Computes the success probability of the geometric law with a second moment.

    The inverse of (2 - r) / r^2; Assumption 5's rho is one minus it.

    Args:
        second_moment: c_m, commits squared, >= 1.

    Returns:
        Probability that a commit refreshes the embedding, in (0, 1].
    """
    return 4 / (1 + math.sqrt(1 + 8 * second_moment))


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


def _constant(value: float) -> Schedule:
    return Schedule(float(value), 1.0, 0.0)


def _inverse_root(rule: InverseRootStep, num_clients: int) -> Schedule:
    value = rule.value / math.sqrt(num_clients if rule.by_parties else 1)
    if rule.horizon is not None:
        return _constant(value / math.sqrt(rule.horizon))
    return Schedule(value, 1.0, 0.5)


def _steps(
    values: Sequence[float], epochs: Sequence[float], constants: Constants
) -> Steps:
    per_epoch = constants.commits_per_epoch
    return Steps(np.array(values, float), np.array(epochs, float) * per_epoch)


def _warmup(rule: WarmupStep, constants: Constants) -> Steps:
    rising = np.linspace(rule.first, rule.value, rule.rising)
    falling = rule.value * rule.factor ** np.arange(1, rule.falling + 1)
    values = np.concatenate([rising, falling])
    return _steps(values.tolist(), np.arange(1, values.size).tolist(), constants)


def _both(schedule: Any) -> tuple[Any, Any]:
    return schedule, schedule


def _nonconvex(
    rule: BoundedNonconvexStep | StochasticNonconvexStep,
    longest: float,
    smoothness: float,
) -> tuple[Schedule, Schedule]:
    step = min(1 / (4 * longest * smoothness), rule.c_eta / math.sqrt(rule.horizon))
    return _constant(step / rule.t), _constant(step)


def _bounded_strongly_convex(
    rule: BoundedStronglyConvexStep, smoothness: float, convexity: float
) -> Schedule:
    rate = convexity * min(rule.activation)
    bound = rule.staleness_bound
    # Theorem 8 prints half of the second term of Theorem 2.
    delay = (2 if rule.t == 1 else 1) * rate * bound
    offset = 4 * (4 * (bound + 1) * smoothness + delay) / (rule.t * rate)
    return Schedule(4 / rate, offset, 1.0)


def _stochastic_strongly_convex(
    rule: StochasticStronglyConvexStep, smoothness: float, convexity: float
) -> Schedule:
    moments = rule.delay_second_moments
    if len(moments) != len(rule.activation):
        raise ScenarioError(
            "delay_second_moments must have as many entries as activation "
            f"({len(rule.activation)}), got {len(moments)}; give one per client"
        )
    inverse_step = 4 * (1 + _root_of_largest(moments)) * smoothness
    # Assumption 5 has one rho for all clients; geometric ages, the slowest decides.
    refresh = min(geometric_refresh(moment) for moment in moments)
    rate = min(
        min(refresh * moment * inverse_step / (20 + moment), convexity * q / 2)
        for moment, q in zip(moments, rule.activation, strict=True)
    )
    return Schedule(2 / rate, inverse_step / (rule.t * rate), 1.0)


def _root_of_largest(moments: Sequence[float]) -> float:
    if not moments or min(moments) < 1:
        raise ScenarioError(
            f"delay_second_moments must be >= 1, got {moments}; "
            "an embedding is at least one commit old"
        )
    return math.sqrt(max(moments))


def _check_activation(activation: Sequence[float]) -> None:
    if not activation or max(activation) > 1:
        raise ScenarioError(
            f"activation must be probabilities, got {activation}; "
            "give for each client the share of commits that include it"
        )


def _known(name: str, asked: float | str, constant: Any) -> float:
    computed = measured(constant) if asked == "data" else None
    value = computed if asked == "data" else float(asked)
    if value is None or not 0 < value < math.inf:
        raise ScenarioError(
            f"step_size.{name} must be a number > 0 for this problem, got {asked!r} "
            f"(computed: {value}); write the number, or set problem.l2"
        )
    return value
