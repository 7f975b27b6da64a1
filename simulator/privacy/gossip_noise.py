"""The noise of A(DP)2SGD, and the release of a worker's gradient with it. No JAX.

Whatever workers exchange depends on their data through noisy gradients alone, so that a
release is one gradient, however often its worker's model is sent.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..parts.base import Config
from ..parts.errors import ScenarioError
from .adp2sgd import GossipSetting, least_noise, sensitivity, smallest_epsilon
from .releases import Gaussian

Positive = Annotated[float, Field(gt=0)]
Part = Annotated[float, Field(gt=0, lt=1)]


class Noise(Config):
    """Normal noise on every gradient.

    Either `sigma`, or a `budget` that Theorem 2 turns into it.
    """

    sigma: Annotated[float, Field(ge=0)] | None = None
    """Standard deviation of every coordinate, absolute (A-04)."""
    budget: "Budget | None" = None
    """Budget from which the noise is calculated."""
    on: Literal["sum", "mean"] = "sum"
    """Whether `sigma` is of the noise on the sum of a batch's gradients, as the
    experiments have it, or on their mean, as Theorem 2 does (A-01)."""
    sensitivity: Literal["consistent", "paper"] = "consistent"
    """Accountants' sensitivity of the noisy quantity: 2 G of a sum and 2 G / B of a
    mean, or 2 G / B of either (A-02)."""
    clip: Literal["none", "sample"] = "none"
    """Whether each sample's gradient is clipped to norm G; without that G is but
    assumed, and nothing is guaranteed (A-03)."""
    bound: Positive = 1.0
    """G, l2 norm of a sample's gradient."""

    @model_validator(mode="after")
    def _one_way(self) -> "Noise":
        if (self.sigma is None) == (self.budget is None):
            raise ValueError(
                "must have either sigma or budget, not both or neither; remove one or "
                "add one"
            )
        return self

    def per_mean(self, batch: int) -> float:
        """Returns the divisor of a standard deviation for a batch's mean."""
        return float(batch if self.on == "sum" else 1)


class Budget(Config):
    """The privacy that the workers' noise must give; Theorem 2 gives the noise.

    Source: A(DP)2SGD, Theorem 2, with the best of its parameters mu (A-06).
    """

    epsilon: Positive
    """Epsilon that a client may spend."""
    delta: Part = 1e-5
    """Delta that it holds with."""
    iterations: Annotated[int, Field(ge=1)]
    """T: steps of all workers together; a run ends before one more."""


def sigma_of(noise: Noise, num_samples: Sequence[int], batch: int) -> float:
    """Returns the standard deviation, as set or by Theorem 2.

    Returns:
        The noisy gradient's standard deviation. With the paper's sensitivity, the
        theorem's value for the mean is taken unchanged for the sum (A-02).

    Raises:
        ScenarioError: no noise is admissible for the budget.
    """
    if noise.sigma is not None:
        return noise.sigma
    budget = noise.budget
    assert budget is not None
    setting = GossipSetting(
        num_workers=len(num_samples),
        num_samples=min(num_samples),
        batch=batch,
        iterations=budget.iterations,
        lipschitz=noise.bound,
        delta=budget.delta,
    )
    best, why = least_noise(setting, budget.epsilon)
    if best is None:
        raise ScenarioError(_refusal(setting, budget.epsilon, why))
    of_sum = noise.on == "sum" and noise.sensitivity == "consistent"
    return best.sigma_sum if of_sum else best.sigma_mean


def _refusal(setting: GossipSetting, epsilon: float, why: str) -> str:
    least = smallest_epsilon(setting)
    if not math.isfinite(least):
        return (
            f"algorithm.noise.budget must have small batches for Theorem 2 to hold at "
            f"any epsilon, got {setting.batch} of {setting.num_samples} samples ({why})"
            f"; take a smaller batch, or give sigma"
        )
    if epsilon >= least:
        return (
            f"algorithm.noise.budget.epsilon must ask for more noise for Theorem 2 to "
            f"hold, got {epsilon:g} ({why}); lower it, or give sigma"
        )
    # The least of all mu is not on the grid; some epsilon a little above it is.
    near = (float(f"{least * (1 + step / 1000):.4g}") for step in range(200))
    met = (e for e in near if least_noise(setting, e)[0])
    return (
        f"algorithm.noise.budget.epsilon must be at least {next(met, 1.2 * least):.4g} "
        f"for Theorem 2 to hold, got {epsilon:g} ({why}); raise it, or give sigma"
    )


def release_of(noise: Noise, sigma: float, n: int, batch: int) -> Gaussian:
    """Returns one gradient's release, amplified by the worker's own draw alone."""
    moves = sensitivity(noise.bound, batch, noise.on, noise.sensitivity)
    return Gaussian(sigma / moves, min(1.0, batch / n))


def lacking(noise: Noise) -> list[str]:
    """Returns the gaps in the proof of the release's epsilon."""
    lacks = []
    if noise.clip == "none":
        lacks.append(
            f"gradients are not clipped, G = {noise.bound:g} is assumed (A-03)"
        )
    if noise.on == "sum" and noise.sensitivity == "paper":
        lacks.append("the sensitivity is that of a mean, the noise is on a sum (A-02)")
    return lacks
