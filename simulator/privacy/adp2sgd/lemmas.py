"""Renyi divergences of A(DP)2SGD's releases: Lemmas 2 to 4, and the exact ones.

z is the noise over the sensitivity, gamma the subsampling rate, alpha the order.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 4; Mironov (2017).
"""

import math
from typing import NamedTuple

import numpy as np
import scipy  # its parts are imported when they are used

from ...config.errors import UserError
from .setting import check_positive

LEAST_VARIANCE = 1.5
"""Least variance of the noise over the squared sensitivity, for Lemma 2."""


class Conditions(NamedTuple):
    """The two conditions of Lemma 2, which are those of equation 7.

    Attributes:
        variance: z^2, to be >= 1.5: the condition `noise`.
        order: alpha, to be > 1 and <= `largest_order`: the condition `order`; nan where
            there is none.
        largest_order: log(1 / (gamma (1 + z^2))).
    """

    variance: float
    order: float
    largest_order: float

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the conditions that fail, in that order."""
        holds = {
            "noise": self.variance >= LEAST_VARIANCE,
            "order": 1 < self.order <= self.largest_order,
        }
        return tuple(name for name, held in holds.items() if not held)

    @property
    def hold(self) -> bool:
        """Whether both do."""
        return not self.failed

    @property
    def why(self) -> str:
        """Empty, or what the failed conditions ask for and what there is."""
        got = "none" if math.isnan(self.order) else f"{self.order:.4g}"
        said = {
            "noise": f"noise: sigma^2 / sensitivity^2 must be >= {LEAST_VARIANCE}, "
            f"got {self.variance:.4g}",
            "order": f"order: alpha must be > 1 and <= {self.largest_order:.4g}, "
            f"got {got}",
        }
        return "; ".join(said[name] for name in self.failed)


def conditions(order: float, multiplier: float, ratio: float) -> Conditions:
    """Returns the conditions of Lemma 2, whether they hold or not.

    Args:
        order: alpha, or nan.
        multiplier: z, > 0.
        ratio: Gamma, in (0, 1].

    Raises:
        UserError: the multiplier or the ratio is out of its range.

    Source: A(DP)2SGD, Lemma 2.
    """
    check_positive("multiplier", multiplier, "it is the noise over the sensitivity")
    if not 0 < ratio <= 1:
        raise UserError(
            f"ratio must be in (0, 1], got {ratio}; it is the batch over the samples"
        )
    variance = multiplier**2
    return Conditions(variance, order, -math.log(ratio * (1 + variance)))


def gaussian_rdp(order: float, multiplier: float) -> float:
    """Computes the Renyi divergence of normal noise, alpha / (2 z^2).

    Args:
        order: alpha, > 1.
        multiplier: z, > 0.

    Raises:
        UserError: an argument is out of its range.

    Source: A(DP)2SGD, Lemma 2, first part; Mironov (2017), Corollary 3.
    """
    if not order > 1:
        raise UserError(f"order must be > 1, got {order}; try 2")
    check_positive("multiplier", multiplier, "it is the noise over the sensitivity")
    return order / (2 * multiplier**2)


def poisson_rdp(order: int, multiplier: float, ratio: float) -> float:
    """Computes the exact Renyi divergence of Poisson-sampled normal noise.

    Args:
        order: alpha, an integer >= 2.
        multiplier: z, > 0.
        ratio: Gamma, in (0, 1].

    Raises:
        UserError: an argument is out of its range.

    Source: Mironov, Talwar and Zhang, Renyi Differential Privacy of the Sampled
        Gaussian Mechanism (2019), section 3.3.
    """
    if not order >= 2 or order % 1:
        raise UserError(
            f"order must be an integer >= 2, got {order}; accountants have the others"
        )
    conditions(order, multiplier, ratio)  # refuses the same arguments
    if ratio == 1:
        return gaussian_rdp(order, multiplier)
    k = np.arange(order + 1)
    choose = -np.log(order + 1) - scipy.special.betaln(order - k + 1, k + 1)
    drawn = (order - k) * math.log1p(-ratio) + k * math.log(ratio)
    moments = choose + drawn + (k * k - k) / (2 * multiplier**2)
    return max(0.0, float(np.logaddexp.reduce(moments)) / (order - 1))


def compose(divergence: float, count: int) -> float:
    """Adds up `count` >= 0 equal divergences of one order.

    Source: A(DP)2SGD, Lemma 3.
    """
    return count * divergence


def to_epsilon(divergence: float, order: float, delta: float) -> float:
    """Converts a divergence to epsilon: plus log(1 / delta) / (alpha - 1).

    Args:
        divergence: >= 0, of the order.
        order: alpha, > 1.
        delta: Failure probability, in (0, 1).

    Source: A(DP)2SGD, Lemma 4; Mironov (2017), Proposition 3.
    """
    return divergence + math.log(1 / delta) / (order - 1)


def order_of(mu: float, epsilon: float, delta: float) -> float:
    """Computes the order alpha at which Lemma 4 adds (1 - mu) epsilon.

    Args:
        mu: Share of epsilon that is Renyi divergence, in (0, 1).
        epsilon: > 0.
        delta: Failure probability, in (0, 1).

    Raises:
        UserError: `mu` or `epsilon` is out of its range.

    Source: A(DP)2SGD, Theorem 2.
    """
    if not 0 < mu < 1:
        raise UserError(f"mu must be in (0, 1), got {mu}; try 0.5")
    check_positive("epsilon", epsilon, "try 10")
    return math.log(1 / delta) / ((1 - mu) * epsilon) + 1
