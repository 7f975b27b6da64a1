"""The setting of A(DP)2SGD, and Lemmas 2 to 4 on the divergences of its releases.

z is the noise over the sensitivity, gamma the subsampling rate, alpha the order.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 4; Mironov (2017); decisions (A-)
are in evidence/pages/decisions.md.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...parts.errors import UserError

On = Literal["sum", "mean"]
"""Gradient of a batch that gets the noise (A-01)."""
Reading = Literal["consistent", "paper"]
"""Sensitivity of the gradient that has the noise, or of the mean for both (A-02)."""
LEAST_VARIANCE = 1.5
"""Least variance of the noise over the squared sensitivity, for Lemma 2."""


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
    """Computes how far a batch's gradient moves when one sample is replaced.

    Args:
        lipschitz: G, bound of one sample's gradient, > 0.
        batch: B, >= 1.
        on: Gradient that is released.
        reading: `paper` has 2 G / B for both, which is that of the mean.

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
