"""The utility that privacy costs: Proposition 2 of A(DP)2SGD and its constant.

It rests on Proposition 1, whose least number of iterations is out of reach (A-17), and
on Theorem 2, of whose noise it drops the + 1 in alpha.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 4; A-17, A-18.
"""

import math
from typing import NamedTuple

from stalesim.simulator.privacy.adp2sgd import (
    GossipSetting,
    check_at_least_one,
    check_positive,
    order_of,
)


class Utility(NamedTuple):
    """Proposition 2, or its C_4, in three forms.

    Attributes:
        printed: Value with B^-2, from a mean gradient's noise in a sum's formula.
        corrected: Value without B^-2.
        exact: Value without B^-2, and with the + 1 in alpha.
    """

    printed: float
    corrected: float
    exact: float


def c4(setting: GossipSetting, epsilon: float, mu: float) -> Utility:
    """Computes the constant of Proposition 2, dimensionless.

    Args:
        setting: Setting, of which the batch and delta are used.
        epsilon: > 0; without effect on the first two forms.
        mu: Share of epsilon that is Renyi divergence, in (0, 1).

    Raises:
        UserError: `mu` or `epsilon` is out of its range.

    Source: A(DP)2SGD, Proposition 2; A-18.
    """
    alpha = order_of(mu, epsilon, setting.delta)
    share = 1 / (mu * (1 - mu))
    terms = share / setting.batch**2, share, share * alpha / (alpha - 1)
    return Utility(*(4 * math.sqrt(5) * (1 + term) for term in terms))


def proposition2_iterations(
    setting: GossipSetting,
    epsilon: float,
    *,
    dimension: int,
    smoothness: float,
    gap: float,
) -> float:
    """Computes the number of mini-batches T at which Proposition 2 holds.

    Args:
        setting: Setting, of which all but T and the batch are used.
        epsilon: > 0.
        dimension: d, >= 1.
        smoothness: L, > 0.
        gap: Gamma, F(w^0) - F* + L (varsigma^2 / B + 6 upsilon^2), > 0.

    Raises:
        UserError: an argument is out of its range.

    Source: A(DP)2SGD, equation 8.
    """
    unit = _unit(setting, epsilon, dimension, smoothness, gap)
    return gap**2 / (20 * unit**2)


def proposition2(
    setting: GossipSetting,
    epsilon: float,
    mu: float,
    *,
    dimension: int,
    smoothness: float,
    gap: float,
) -> Utility:
    """Bounds E |grad F|^2 at an average or uniformly drawn iterate.

    Args:
        setting: Setting, of which all but T is used.
        epsilon: > 0.
        mu: Share of epsilon that is Renyi divergence, in (0, 1).
        dimension: d, >= 1.
        smoothness: L, > 0.
        gap: Gamma, F(w^0) - F* + L (varsigma^2 / B + 6 upsilon^2), > 0.

    Raises:
        UserError: an argument is out of its range.

    Source: A(DP)2SGD, Proposition 2; A-18.
    """
    unit = _unit(setting, epsilon, dimension, smoothness, gap)
    return Utility(*(constant * unit for constant in c4(setting, epsilon, mu)))


def _unit(
    setting: GossipSetting,
    epsilon: float,
    dimension: int,
    smoothness: float,
    gap: float,
) -> float:
    """Returns the factor of C_4."""
    check_positive("epsilon", epsilon, "try 10")
    check_at_least_one("dimension", dimension, "it is the number of weights")
    check_positive("smoothness", smoothness, "it is a Lipschitz constant")
    check_positive("gap", gap, "it is Gamma of Proposition 2")
    square = dimension * smoothness * gap * math.log(1 / setting.delta)
    data = setting.num_workers * setting.num_samples
    return setting.lipschitz * math.sqrt(square) / (data * epsilon)
