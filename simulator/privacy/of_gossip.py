"""What a worker's gradient releases in A(DP)2SGD, from its configuration. No JAX here.

Whatever workers exchange depends on their data through noisy gradients alone, so that a
release is one gradient, however often its worker's model is sent.
"""

import math
from collections.abc import Sequence

from simulator.config.errors import ScenarioError
from simulator.privacy import decentralised
from simulator.privacy.decentralised import Setting
from simulator.privacy.releases import Gaussian
from simulator.scenario.decentralised import Noise


def sigma_of(noise: Noise, num_samples: Sequence[int], batch: int) -> float:
    """Returns the standard deviation that is stated, or that Theorem 2 asks for.

    Args:
        noise: its configuration.
        num_samples: n of each worker.
        batch: B.

    Returns:
        That of the gradient which gets the noise. With the paper's sensitivity, what
        the theorem has for the mean is taken as it is for the sum (A-02).

    Raises:
        ScenarioError: no noise is admissible for the budget.
    """
    if noise.sigma is not None:
        return noise.sigma
    budget = noise.budget
    assert budget is not None
    setting = Setting(
        num_workers=len(num_samples),
        num_samples=min(num_samples),
        batch=batch,
        iterations=budget.iterations,
        lipschitz=noise.bound,
        delta=budget.delta,
    )
    found = decentralised.least_noise(setting, budget.epsilon)
    if found.best is None:
        raise ScenarioError(_refusal(setting, budget.epsilon, found.why))
    of_sum = noise.on == "sum" and noise.sensitivity == "consistent"
    return found.best.sigma_sum if of_sum else found.best.sigma_mean


def _refusal(setting: Setting, epsilon: float, why: str) -> str:
    """Returns the error of a budget for which no mu of Theorem 2 is admissible."""
    least = decentralised.smallest_epsilon(setting).epsilon
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
    met = (e for e in near if decentralised.least_noise(setting, e).admissible)
    return (
        f"algorithm.noise.budget.epsilon must be at least {next(met, 1.2 * least):.4g} "
        f"for Theorem 2 to hold, got {epsilon:g} ({why}); raise it, or give sigma"
    )


def release_of(noise: Noise, sigma: float, n: int, batch: int) -> Gaussian:
    """Returns one gradient's release, amplified by the worker's own draw alone.

    Args:
        noise: its configuration.
        sigma: standard deviation of the noise, >= 0.
        n: samples of the worker.
        batch: B, distinct ones.
    """
    moves = decentralised.sensitivity(noise.bound, batch, noise.on, noise.sensitivity)
    return Gaussian(sigma / moves, min(1.0, batch / n))


def lacking(noise: Noise) -> list[str]:
    """Returns what the release's epsilon lacks for a proof."""
    lacks = []
    if noise.clip == "none":
        lacks.append(
            f"gradients are not clipped, G = {noise.bound:g} is assumed (A-03)"
        )
    if noise.on == "sum" and noise.sensitivity == "paper":
        lacks.append("the sensitivity is that of a mean, the noise is on a sum (A-02)")
    return lacks
