"""Stages of MAPA and the step sizes of Table II, in plain Python.

Source: Li, Yang, Ren and Zhao, eq. 10-12, 15 and 16, Algorithm 1, Table II.
"""

import math
from typing import NamedTuple

from ....parts.expressions import up
from .part import Asgd, Audp, Csgd, EdgeCloud, Mapa

FOREVER = 2**31 - 1
"""Last iteration of a stage that never ends."""
MOST_STAGES = 64


class Stage(NamedTuple):
    """Iterations with one sensitivity and one step rule.

    The step size of iteration t >= 1 is 1 / (curvature + spread * sqrt(t + shift)).

    Attributes:
        last: its last iteration.
        sensitivity: Delta S, in the gradient's units; infinite without privacy.
        curvature: part of the inverse step size.
        spread: part of it that grows.
        shift: added to t.
    """

    last: int
    sensitivity: float
    curvature: float
    spread: float
    shift: float


def stages(config: EdgeCloud, batch: int, num_clients: int, size: int) -> list[Stage]:
    """Returns the stages of an algorithm; all but MAPA have one.

    Args:
        config: Configuration of the algorithm, every constant a number.
        batch: b, samples.
        num_clients: K.
        size: d, numbers that get noise.
    """
    assert config.smoothness != "data"
    assert config.sigma != "data"
    longest = num_clients + 1
    if isinstance(config, Asgd | Audp | Mapa) and config.max_staleness is not None:
        longest = config.max_staleness + 1
    if isinstance(config, Csgd | Asgd):
        curvature = config.smoothness
        if isinstance(config, Asgd):
            curvature *= longest**2
        spread = config.sigma / (config.radius * math.sqrt(batch))
        return [Stage(FOREVER, math.inf, curvature, spread, 1.0)]
    assert isinstance(config, Audp | Mapa)
    sensitivity = initial_sensitivity(config, batch)
    if isinstance(config, Audp):
        spread = math.sqrt(variance(config, sensitivity, batch, size) + 1)
        delayed = longest**2 + 1 if config.rate == "equation_11" else longest
        curvature = config.smoothness * delayed
        return [Stage(FOREVER, sensitivity, curvature, spread, 0.0)]
    found: list[Stage] = []
    last = 0
    while last < FOREVER and len(found) < MOST_STAGES:
        total = variance(config, sensitivity, batch, size)
        # Equation 16 with equality, clamped (M-06); then 13 and 15.
        reduced = batch * sensitivity * config.theta
        divisor = max(8 * total / (longest * reduced**2), 1.0)
        smooth = config.smoothness
        length = 4 * divisor**2 * smooth * longest**2 * config.gap / total
        last = min(last + max(1, up(length)), FOREVER)
        curvature = 2 * divisor * smooth * longest
        found.append(Stage(last, sensitivity, curvature, 0.0, 0.0))
        if config.stage_rule == "theta":
            sensitivity *= config.theta
        else:
            sensitivity = 2 / batch * math.sqrt(2 * total / (divisor * longest))
    return [*found[:-1], found[-1]._replace(last=FOREVER)]


def initial_sensitivity(config: Audp | Mapa, batch: int) -> float:
    """Returns Delta S_0: of eq. 12, or 2 G / b of a given clipping bound (M-10)."""
    if config.clip_bound is not None:
        assert config.clip_bound != "data"
        return 2 * config.clip_bound / batch
    assert config.sigma != "data"
    # 1 - sqrt(1 - delta), without cancellation.
    tail = config.delta / (1 + math.sqrt(1 - config.delta))
    return 2 * config.sigma / (batch * math.sqrt(tail))


def variance(config: Audp | Mapa, sensitivity: float, batch: int, size: int) -> float:
    """Returns Delta_b, the total variance of a contribution (section 1, M-02, M-17)."""
    assert config.sigma != "data"
    epsilons = config.epsilon
    least = min(epsilons) if isinstance(epsilons, tuple) else epsilons
    moments = {
        "radial_exponential": 2,
        "spherical_laplace": size * (size + 1),
        "laplace": 2 * size,
    }
    moment = 2 if config.variance_in_analysis == "paper" else moments[config.noise]
    return config.sigma**2 / batch + moment * (sensitivity / least) ** 2
