"""The privacy of A(DP)2SGD: Lemmas 2 to 4, Theorem 2, and its inverse.

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
epsilon is inf, and `why` names it. All takes gradients as bounded by G (A-03). z is the
noise over the sensitivity, gamma the subsampling rate, alpha the order.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 4 and its appendix; Mironov
(2017); decisions (A-) are in evidence/pages/decisions.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ..parts.errors import UserError

On = Literal["sum", "mean"]
"""Gradient of a batch that gets the noise (A-01)."""
Reading = Literal["consistent", "paper"]
"""Sensitivity of the gradient that has the noise, or of the mean for both (A-02)."""
LEAST_VARIANCE = 1.5
"""Least variance of the noise over the squared sensitivity, for Lemma 2."""
GRID = tuple(step / 100 for step in range(1, 100))
"""Values of mu that are searched (A-06)."""
GRID_OF_NOISE = 10_000
"""Values of the noise that are searched."""


@dataclass(frozen=True)
class GossipSetting:
    """Mini-batches that are released, and the samples that they are drawn from.

    Attributes:
        num_workers: K, >= 1; with one, nothing is claimed for the choice of a worker.
        num_samples: N_(1), samples of the worker that has the fewest.
        batch: B distinct samples of a gradient, in [1, num_samples].
        iterations: T, mini-batches of all workers together, >= 1.
        lipschitz: G, bound of one sample's gradient, > 0.
        delta: Failure probability, in (0, 1).

    Raises:
        UserError: a value is out of its range.
    """

    num_workers: int
    num_samples: int
    batch: int
    iterations: int
    lipschitz: float = 1.0
    delta: float = 1e-5

    def __post_init__(self) -> None:
        check_at_least_one("num_workers", self.num_workers, "1 is a worker by itself")
        check_at_least_one("batch", self.batch, "it is a number of samples")
        check_at_least_one("iterations", self.iterations, "they are those of all")
        if not self.num_samples >= self.batch:
            raise UserError(
                f"num_samples must be >= batch ({self.batch}), got {self.num_samples}; "
                "draw smaller batches"
            )
        check_positive("lipschitz", self.lipschitz, "clip gradients at it")
        if not 0 < self.delta < 1:
            raise UserError(f"delta must be in (0, 1), got {self.delta}; try 1e-5")

    @property
    def ratio(self) -> float:
        """The subsampling rate gamma, B / (K n_(1))."""
        return self.batch / (self.num_workers * self.num_samples)

    def slope(self, multiplier: float) -> float:
        """Computes the divergence of all steps over its order, 5 T gamma^2 / z^2."""
        return self.iterations * 5 * (self.ratio / multiplier) ** 2

    def multiplier(
        self, sigma: float, on: On, reading: Reading = "consistent"
    ) -> float:
        """Computes the noise over the sensitivity when one sample is replaced.

        Args:
            sigma: Standard deviation of the noise, > 0, in units of a gradient.
            on: Gradient that gets the noise.
            reading: `paper` takes 2 G / B for both, and is B times too much on the sum.

        Raises:
            UserError: `sigma` is not > 0.
        """
        check_positive("sigma", sigma, "without noise nothing is private")
        return sigma / sensitivity(self.lipschitz, self.batch, on, reading)


def sensitivity(
    lipschitz: float, batch: int, on: On, reading: Reading = "consistent"
) -> float:
    """Computes the change of a batch's gradient when one sample is replaced.

    Args:
        lipschitz: G, bound of one sample's gradient, > 0.
        batch: B, >= 1.
        on: Gradient that is released.
        reading: `paper` has 2 G / B for both, which is the mean's.

    Source: A(DP)2SGD, Theorem 2; A-02.
    """
    whole = on == "sum" and reading == "consistent"
    return 2 * lipschitz / (1 if whole else batch)


def check_at_least_one(name: str, value: int, remedy: str) -> None:
    """Raises UserError where a count is below 1."""
    if not value >= 1:
        raise UserError(f"{name} must be >= 1, got {value}; {remedy}")


def check_positive(name: str, value: float, remedy: str) -> None:
    """Raises UserError where a number is not within (0, inf)."""
    if not 0 < value < math.inf:
        raise UserError(f"{name} must be > 0 and finite, got {value}; {remedy}")


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
        noise = () if self.variance >= LEAST_VARIANCE else ("noise",)
        return noise if 1 < self.order <= self.largest_order else (*noise, "order")

    @property
    def hold(self) -> bool:
        """Whether both do."""
        return not self.failed

    @property
    def lack(self) -> float:
        """The larger of the shortfalls of both."""
        return max(LEAST_VARIANCE - self.variance, self.order - self.largest_order)

    @property
    def why(self) -> str:
        """Empty, or the failed conditions with their values."""
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


class SufficientNoise(NamedTuple):
    """The noise that Theorem 2 demands.

    Attributes:
        epsilon: Target.
        mu: Share of epsilon that is Renyi divergence.
        sigma_mean: Standard deviation of the noise on the mean gradient.
        sigma_sum: The same noise on the sum, B times as large.
        conditions: Equation 7; where they fail the noise guarantees nothing.
    """

    epsilon: float
    mu: float
    sigma_mean: float
    sigma_sum: float
    conditions: Conditions


def theorem2(setting: GossipSetting, epsilon: float, mu: float) -> SufficientNoise:
    """Computes the noise of Theorem 2, and whether equation 7 holds.

    Raises:
        UserError: an argument is out of its range; a failed condition is a result.

    Source: A(DP)2SGD, Theorem 2 and equation 7.
    """
    alpha = order_of(mu, epsilon, setting.delta)
    data = setting.num_workers * setting.num_samples
    square = 20 * setting.iterations * alpha / (mu * epsilon)
    mean = setting.lipschitz * math.sqrt(square) / data
    found = conditions(alpha, setting.multiplier(mean, "mean"), setting.ratio)
    return SufficientNoise(epsilon, mu, mean, mean * setting.batch, found)


def least_noise(
    setting: GossipSetting, epsilon: float, grid: Sequence[float] = GRID
) -> tuple[SufficientNoise | None, str]:
    """Finds the mu with the least noise among those for which equation 7 holds.

    Returns:
        The noise and "", or None and a sentence on why no mu is admissible.

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
    nearest = min(tried, key=lambda noise: noise.conditions.lack)
    return None, (
        f"no mu of {len(tried)} is admissible at epsilon {epsilon:g}; the nearest, "
        f"{nearest.mu:g}, fails {nearest.conditions.why}"
    )


def best_order(setting: GossipSetting, multiplier: float) -> Conditions:
    """Finds the order at which Lemmas 2 to 4 give the least epsilon.

    Args:
        setting: Setting as published, or a worker's own.
        multiplier: z, noise over the sensitivity, > 0: see `GossipSetting.multiplier`.

    Returns:
        The conditions of Lemma 2 at this order, which is nan where none is admissible.

    Raises:
        UserError: an argument is out of its range.
    """
    limits = conditions(math.nan, multiplier, setting.ratio)
    free = 1 + math.sqrt(math.log(1 / setting.delta) / setting.slope(multiplier))
    order = min(free, limits.largest_order)
    return limits._replace(order=order) if order > 1 else limits


def achieved(setting: GossipSetting, multiplier: float) -> float:
    """Computes the least epsilon of Lemmas 2 to 4 over the admissible orders.

    Returns:
        s alpha + log(1 / delta) / (alpha - 1) at the best order, with s the slope; inf
        where no order is admissible.

    Source: A(DP)2SGD, Lemmas 2 to 4.
    """
    found = best_order(setting, multiplier)
    if not found.hold:
        return math.inf
    divergence = setting.slope(multiplier) * found.order
    return to_epsilon(divergence, found.order, setting.delta)


def smallest_epsilon(setting: GossipSetting) -> float:
    """Finds the least epsilon for which there is an admissible noise, on a grid.

    More noise lowers the divergence, and with it the largest order of Lemma 2. The
    value is inf where no noise is admissible.

    Source: A(DP)2SGD, equation 7; A-06.
    """
    least = math.sqrt(LEAST_VARIANCE) * (1 + 1e-12)  # or rounding fails the condition
    variance = 1 / (math.e * setting.ratio) - 1  # here the largest order is 1
    most = max(least, math.sqrt(max(variance, 0)))
    tried = np.geomspace(least, most, GRID_OF_NOISE, endpoint=False).tolist()
    return min(achieved(setting, multiplier) for multiplier in tried)
