"""The privacy of A(DP)2SGD beyond what runs need: Remark 1, and numeric bounds.

Theorem 2 and Lemmas 2 to 4 are `simulator.privacy.adp2sgd`.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020), section 4; decisions (A-) are in
    evidence/pages/decisions.md.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import special

from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.privacy.accountants import Rdp
from stalesim.simulator.privacy.adp2sgd import (
    Conditions,
    GossipSetting,
    SufficientNoise,
    achieved,
    conditions,
    to_epsilon,
)
from stalesim.simulator.privacy.releases import Gaussian

PUBLISHED = GossipSetting(
    num_workers=16, num_samples=3125, batch=256, iterations=58_593
)
"""CIFAR-10 of section 5: 50,000 samples on 16 workers for 300 epochs. G and delta are
not reported and taken as 1 and 1e-5."""
ORDERS = range(2, 257)


class Intermediate(NamedTuple):
    """Remark 1 at one iteration.

    Attributes:
        claimed: sqrt(t / T) epsilon.
        conditions: Conditions of Lemma 2, at the order alpha_t that the claim needs.
        achieved: Least epsilon at the same noise.
        unconstrained: Value of the same formula with the conditions ignored; no
            guarantee below `achieved`.
    """

    claimed: float
    conditions: Conditions
    achieved: float
    unconstrained: float

    @property
    def admissible(self) -> bool:
        """Whether the claim follows from Lemma 2."""
        return self.conditions.hold


class Numeric(NamedTuple):
    """Epsilons by Renyi divergences without Lemma 2.

    Attributes:
        attained: No bound: by Poisson sampling's formula at the sensitivity of a
            replaced sample, integer orders and Lemma 4 (evidence/pages/tables.md).
            Two data sets have this divergence without replacement, too (all gradients
            but the replaced one are its opposite).
        uniform: a bound for batches without replacement and a replaced sample.
        poisson: a bound for Poisson-sampled batches and one sample more or less.
    """

    attained: float
    uniform: float
    poisson: float


def own(setting: GossipSetting, steps: int | None = None) -> GossipSetting:
    """Returns the setting of one worker's own steps, drawn from its own samples.

    Args:
        setting: Setting of all workers.
        steps: Steps of the worker, >= 1; by default T / K rounded up, which is its
            number only where all are equally fast.
    """
    equal = -(-setting.iterations // setting.num_workers)
    return replace(setting, num_workers=1, iterations=equal if steps is None else steps)


def remark1(
    setting: GossipSetting, noise: SufficientNoise, iterations: int
) -> Intermediate:
    """Computes what Remark 1 claims of the models at iteration t, and whether it may.

    The claim needs the order 1 + (alpha - 1) sqrt(T / t).

    Args:
        setting: Setting of the noise.
        noise: Noise by Theorem 2.
        iterations: t, in [1, T].

    Source: A(DP)2SGD, Remark 1; A-23.
    """
    share = math.sqrt(iterations / setting.iterations)
    multiplier = setting.multiplier(noise.sigma_mean, "mean")
    order = 1 + (noise.conditions.order - 1) / share
    then = replace(setting, iterations=iterations)
    return Intermediate(
        share * noise.epsilon,
        conditions(order, multiplier, setting.ratio),
        achieved(then, multiplier),
        unconstrained(then, multiplier),
    )


def unconstrained(setting: GossipSetting, multiplier: float) -> float:
    """Computes the least epsilon of Lemmas 2 to 4, with their conditions ignored."""
    slope = setting.slope(multiplier)
    return slope + 2 * math.sqrt(slope * math.log(1 / setting.delta))


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
        return order / (2 * multiplier**2)
    k = np.arange(order + 1)
    choose = -np.log(order + 1) - special.betaln(order - k + 1, k + 1)
    drawn = (order - k) * math.log1p(-ratio) + k * math.log(ratio)
    moments = choose + drawn + (k * k - k) / (2 * multiplier**2)
    return max(0.0, float(np.logaddexp.reduce(moments)) / (order - 1))


def numeric(setting: GossipSetting, multiplier: float) -> Numeric:
    """Computes epsilon of the same noise without Lemma 2.

    The bounds are dp-accounting's, by `accountants.Rdp`; proved for a worker's own
    setting only. They take about half a second.

    Args:
        setting: Setting as published, or a worker's own.
        multiplier: Noise over the sensitivity when a sample is replaced, > 0. One
            sample more or less moves the sum by half of that.

    Source: A-05, A-06; Wang, Balle and Kasiviswanathan (2019) and Mironov, Talwar and
        Zhang (2019).
    """
    count, ratio, delta = setting.iterations, setting.ratio, setting.delta
    spent = ((order, count * poisson_rdp(order, multiplier, ratio)) for order in ORDERS)
    attained = min(to_epsilon(total, order, delta) for order, total in spent)
    uniform, poisson = Rdp(), Rdp()
    uniform.release(count, Gaussian(multiplier, ratio))
    poisson.release(count, Gaussian(2 * multiplier, ratio, "poisson"))
    return Numeric(attained, uniform.epsilon(delta), poisson.epsilon(delta))
