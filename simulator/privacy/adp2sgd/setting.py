"""How much A(DP)2SGD releases, of whose data, and what noise is measured against.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 4; decisions (A-) are in
evidence/pages/decisions.md.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from ...config.errors import UserError
from ..releases import Gaussian, Sampling

On = Literal["sum", "mean"]
"""Gradient of a batch that gets the noise (A-01)."""
Reading = Literal["consistent", "paper"]
"""Sensitivity of the gradient that has the noise, or of the mean for both (A-02)."""


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

    @property
    def amplified(self) -> bool:
        """Whether whose turn it is counts as a draw, which no proof covers (A-05)."""
        return self.num_workers > 1

    def own(
        self, steps: int | None = None, num_samples: int | None = None
    ) -> "GossipSetting":
        """Returns the setting of one worker's own steps, drawn from its own samples.

        Args:
            steps: Steps of the worker, >= 1; by default T / K rounded up, which is its
                number only where all are equally fast.
            num_samples: Samples of the worker; by default n_(1).

        Raises:
            UserError: a value is out of its range.
        """
        equal = -(-self.iterations // self.num_workers)
        return replace(
            self,
            num_workers=1,
            iterations=equal if steps is None else steps,
            num_samples=self.num_samples if num_samples is None else num_samples,
        )

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

    def release(self, multiplier: float, sampling: Sampling = "uniform") -> Gaussian:
        """Returns one release as accountants count it.

        Args:
            multiplier: Noise over the sensitivity under the adjacency of `sampling`.
            sampling: Without replacement (replace-one), or Poisson (add-or-remove).
        """
        return Gaussian(multiplier, self.ratio, sampling)


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


def rescaled(sigma: float, batch: int, *, source: On, target: On) -> float:
    """Converts noise on one gradient to the same noise on the other.

    Args:
        sigma: Standard deviation on the `source` gradient.
        batch: B, the factor between sum and mean.
        source: Gradient that has the noise.
        target: Gradient that the noise is wanted for.

    Source: A-01.
    """
    if source == target:
        return sigma
    return sigma * batch if target == "sum" else sigma / batch


def check_at_least_one(name: str, value: int, remedy: str) -> None:
    """Raises UserError where a count is below 1."""
    if not value >= 1:
        raise UserError(f"{name} must be >= 1, got {value}; {remedy}")


def check_positive(name: str, value: float, remedy: str) -> None:
    """Raises UserError where a number is not within (0, inf)."""
    if not 0 < value < math.inf:
        raise UserError(f"{name} must be > 0 and finite, got {value}; {remedy}")


PUBLISHED = GossipSetting(
    num_workers=16, num_samples=3125, batch=256, iterations=58_593
)
"""CIFAR-10 of section 5: 50,000 samples on 16 workers for 300 epochs. G and delta are
not reported and taken as 1 and 1e-5."""
