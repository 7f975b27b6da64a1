"""The privacy of A(DP)2SGD: Theorem 2, and its inverse.

Every step of a worker releases a gradient of B of its n samples with normal noise of
standard deviation sigma. Two accountings, which are two settings (A-05):

=============  =========  ===========  ==============================================
setting        rate       releases     whose turn it is
=============  =========  ===========  ==============================================
as published   B / (K n)  T of all     counts as a draw, which no proof covers: all
                                       workers run all the time, and neighbours see
                                       who sends
one worker's   B / n      its own      is no draw
=============  =========  ===========  ==============================================

The first is not merely unproved: to a neighbour who sees whose turn it is, Theorem 2's
noise for an epsilon of 10 in the published setting leaves two data sets more than 12
apart, at the same delta (tests/evidence/test_accounting.py).

Lemma 2 has two conditions. Whether they hold is a result, not an error: where one fails
epsilon is inf, and `why` says which. All takes gradients as bounded by G (A-03).

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 4 and its appendix; decisions
(A-) are in evidence/pages/decisions.md.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...parts.errors import UserError
from .lemmas import (
    LEAST_VARIANCE,
    Conditions,
    GossipSetting,
    conditions,
    order_of,
    to_epsilon,
)

GRID = tuple(step / 100 for step in range(1, 100))
"""Values of mu that are searched (A-06)."""


class SufficientNoise(NamedTuple):
    """The noise that Theorem 2 demands.

    Attributes:
        epsilon: Target.
        mu: Share of epsilon that is Renyi divergence.
        order: alpha.
        sigma_mean: Standard deviation of the noise on the mean gradient.
        sigma_sum: The same noise on the sum, B times as large.
        conditions: Equation 7; where they fail the noise guarantees nothing.
    """

    epsilon: float
    mu: float
    order: float
    sigma_mean: float
    sigma_sum: float
    conditions: Conditions


class Achieved(NamedTuple):
    """The least epsilon that Lemmas 2 to 4 give for a noise.

    Attributes:
        epsilon: inf where no order is admissible.
        mu: Share of it that is Renyi divergence; nan where no order is admissible.
        multiplier: Noise over the sensitivity.
        conditions: Conditions of Lemma 2, at the best order.
        unconstrained: Value of the same formula with the conditions ignored; no
            guarantee below `epsilon`.
    """

    epsilon: float
    mu: float
    multiplier: float
    conditions: Conditions
    unconstrained: float

    @property
    def admissible(self) -> bool:
        """Whether some order is, so that epsilon is a guarantee."""
        return self.conditions.hold

    @property
    def why(self) -> str:
        """Empty, or which conditions fail."""
        return self.conditions.why


def theorem2(setting: GossipSetting, epsilon: float, mu: float) -> SufficientNoise:
    """Computes the noise that Theorem 2 asks for, and whether equation 7 holds.

    Args:
        setting: Setting as published, or a worker's own.
        epsilon: Target, > 0.
        mu: Share of it that is Renyi divergence, in (0, 1).

    Raises:
        UserError: an argument is out of its range; a failed condition is a result.

    Source: A(DP)2SGD, Theorem 2 and equation 7.
    """
    alpha = order_of(mu, epsilon, setting.delta)
    data = setting.num_workers * setting.num_samples
    square = 20 * setting.iterations * alpha / (mu * epsilon)
    mean = setting.lipschitz * math.sqrt(square) / data
    found = conditions(alpha, setting.multiplier(mean, "mean"), setting.ratio)
    return SufficientNoise(epsilon, mu, alpha, mean, mean * setting.batch, found)


def least_noise(
    setting: GossipSetting, epsilon: float, grid: Sequence[float] = GRID
) -> tuple[SufficientNoise | None, str]:
    """Finds the mu with the least noise among those for which equation 7 holds.

    Args:
        setting: Setting as published, or a worker's own.
        epsilon: Target, > 0.
        grid: Values of mu in (0, 1), at least one.

    Returns:
        The noise and "", or None and a sentence that says why no mu is admissible.

    Raises:
        UserError: an argument is out of its range.

    Source: A(DP)2SGD, Theorem 2; A-06.
    """
    if not grid:
        raise UserError("grid must have a value of mu, got none; leave it out")
    tried = [theorem2(setting, epsilon, mu) for mu in grid]
    fits = [noise for noise in tried if noise.conditions.hold]
    if fits:
        return min(fits, key=lambda noise: noise.sigma_mean), ""
    nearest = min(tried, key=lambda noise: _lacking(noise.conditions))
    return None, (
        f"no mu of {len(tried)} is admissible at epsilon {epsilon:g}; the nearest, "
        f"{nearest.mu:g}, fails {nearest.conditions.why}"
    )


def achieved(setting: GossipSetting, multiplier: float) -> Achieved:
    """Finds the least epsilon of Lemmas 2 to 4 over the admissible orders.

    Args:
        setting: Setting as published, or a worker's own.
        multiplier: z, noise over the sensitivity, > 0: see `GossipSetting.multiplier`.

    Returns:
        The least of s alpha + log(1 / delta) / (alpha - 1) with s = 5 T gamma^2 / z^2;
        epsilon is inf where no order is admissible.

    Raises:
        UserError: an argument is out of its range.

    Source: A(DP)2SGD, Lemmas 2 to 4.
    """
    limits = conditions(math.nan, multiplier, setting.ratio)
    tail = math.log(1 / setting.delta)
    slope = setting.iterations * 5 * (setting.ratio / multiplier) ** 2
    free = slope + 2 * math.sqrt(slope * tail)
    order = min(1 + math.sqrt(tail / slope), limits.largest_order)
    if order <= 1:
        return Achieved(math.inf, math.nan, multiplier, limits, free)
    found = limits._replace(order=order)
    if not found.hold:
        return Achieved(math.inf, math.nan, multiplier, found, free)
    epsilon = to_epsilon(slope * order, order, setting.delta)
    return Achieved(epsilon, slope * order / epsilon, multiplier, found, free)


def smallest_epsilon(setting: GossipSetting) -> Achieved:
    """Finds the least epsilon for which there is an admissible noise.

    More noise lowers the divergence, and with it the largest order of Lemma 2.

    Args:
        setting: Setting as published, or a worker's own.

    Returns:
        It and its noise; epsilon is inf where no noise is admissible.

    Source: A(DP)2SGD, equation 7; A-06.
    """
    least = math.sqrt(LEAST_VARIANCE) * (1 + 1e-12)  # or rounding fails the condition
    variance = 1 / (math.e * setting.ratio) - 1  # here the largest order is 1
    if variance <= least**2:
        return achieved(setting, least)
    tried = np.geomspace(least, math.sqrt(variance), 1000, endpoint=False)
    values = [achieved(setting, float(z)).epsilon for z in tried]
    best = int(np.argmin(values))
    low, high = max(0, best - 1), min(best + 1, len(tried) - 1)
    from scipy import optimize  # 0.7 s: only where it is needed

    refined: Any = optimize.minimize_scalar(
        lambda z: achieved(setting, float(z)).epsilon,
        bounds=(tried[low], tried[high]),
        method="bounded",
        options={"xatol": 1e-9},
    )
    both = [achieved(setting, float(z)) for z in (tried[best], refined.x)]
    return min(both, key=lambda one: one.epsilon)


def _lacking(found: Conditions) -> float:
    return max(LEAST_VARIANCE - found.variance, found.order - found.largest_order)
