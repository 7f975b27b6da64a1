"""Lemma 2 of A(DP)2SGD: the published divergence of a subsampled step.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 4.
"""

from typing import NamedTuple

from stalesim.simulator.privacy.adp2sgd.lemmas import (
    Conditions,
    conditions,
    gaussian_rdp,
)


class Divergence(NamedTuple):
    """A bound of a Renyi divergence, and whether Lemma 2 covers it.

    Attributes:
        value: Value of the formula, >= 0; a bound only where the conditions hold.
        conditions: Conditions of Lemma 2.
    """

    value: float
    conditions: Conditions


def subsampled_rdp(order: float, multiplier: float, ratio: float) -> Divergence:
    """Computes Lemma 2's bound without replacement, 5 gamma^2 alpha / z^2.

    Args:
        order: alpha, > 1.
        multiplier: z, > 0.
        ratio: Gamma, in (0, 1].

    Raises:
        UserError: an argument is out of its range; a failed condition is a result.

    Source: A(DP)2SGD, Lemma 2, second part.
    """
    value = 10 * ratio**2 * gaussian_rdp(order, multiplier)
    return Divergence(value, conditions(order, multiplier, ratio))
