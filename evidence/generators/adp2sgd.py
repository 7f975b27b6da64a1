"""Tables of A(DP)2SGD: what its theory promises in the published setting.

Source: Xu, Zhang and Wang, A(DP)2SGD (2020); decisions (A-) are in
    evidence/pages/decisions.md, and sections those of the specification that it
    describes.
"""

from collections.abc import Callable, Sequence
from typing import Any, get_args

import pandas as pd

from stalesim.simulator.privacy.accountants import Pld
from stalesim.simulator.privacy.adp2sgd import (
    GossipSetting,
    achieved,
    best_order,
    least_noise,
    theorem2,
)
from stalesim.simulator.privacy.releases import Gaussian

from ..theory import accounting, heterogeneity, pairings
from ..theory.accounting import PUBLISHED, Numeric

CIFAR, SWB = 300 * 50_000 // 256, 20 * 4_200_000 // 128
"""Mini-batches of all workers: epochs, samples and batch of section 5.2."""
MODELS = (
    # Table 2: megabytes and hours on one GPU; mini-batches of section 5.4.
    ("ShuffleNet", 4.82, 4.16, CIFAR),
    ("MobileNetV2", 8.76, 4.63, CIFAR),
    ("EfficientNet-B0", 11.11, 5.53, CIFAR),
    ("MobileNet", 12.27, 3.55, CIFAR),
    ("GoogleNet", 23.53, 8.43, CIFAR),
    ("ResNext-29", 34.82, 7.08, CIFAR),
    ("ResNet-18", 42.63, 5.56, CIFAR),
    ("SENet-18", 42.95, 5.80, CIFAR),
    ("VGG-19", 76.45, 7.42, CIFAR),
    ("LSTM", 164.62, 102.41, SWB),
)
GRID = tuple(step / 10_000 for step in range(1, 10_000))
"""Values of mu that the tables search, finer than the package's."""
GBIT_PER_S = 100.0
"""Ethernet between the servers (section 5.2)."""
WORKERS = 16


def noise_table(
    numeric: Callable[[GossipSetting, float], Numeric] = accounting.numeric,
    *,
    epsilons: Sequence[float] = (1, 4, 8, 10, 12, 16, 20),
    otherwise: float = 0.5,
) -> pd.DataFrame:
    """Tabulates the least noise by Theorem 2, and other bounds for the same noise.

    Args:
        numeric: the numeric accounting of a setting at a multiplier.
        epsilons: targets.
        otherwise: mu of the rows for which none is admissible.

    Returns:
        One row per target: `epsilon`, `mu`, `order`, `sigma_mean`, `sigma_sum`,
        `equation 7` ("holds", or the conditions that fail), and epsilon at this noise:
        `uniform` and `poisson` in the setting, `uniform_own` and `poisson_own` of a
        worker's own steps.

    Source: A(DP)2SGD, Theorem 2; section 4.2; A-05, A-06.
    """
    rows = []
    for epsilon in epsilons:
        found = least_noise(PUBLISHED, epsilon, GRID)[0]
        noise = theorem2(PUBLISHED, epsilon, otherwise) if found is None else found
        multiplier = PUBLISHED.multiplier(noise.sigma_sum, "sum")
        known = numeric(PUBLISHED, multiplier)
        own = numeric(accounting.own(PUBLISHED), multiplier)
        rows.append(
            {
                "epsilon": epsilon,
                "mu": noise.mu,
                "order": noise.conditions.order,
                "sigma_mean": noise.sigma_mean,
                "sigma_sum": noise.sigma_sum,
                "equation 7": _said(noise.conditions),
                "uniform": known.uniform,
                "poisson": known.poisson,
                "uniform_own": own.uniform,
                "poisson_own": own.poisson,
            }
        )
    return pd.DataFrame(rows)


def observer_table(epsilons: Sequence[float] = (10, 12, 16, 20)) -> pd.DataFrame:
    """Tabulates what Theorem 2's noise is worth against who sees whose turn it is.

    Two data sets differ in one sample of one worker, whose gradients are all -G but for
    this one, which is G in one of them. That worker's own sums are normal at 0, or at
    2 G with the chance B / n that the sample is drawn.

    Args:
        epsilons: what the theorem promises, all admissible.

    Returns:
        One row per target: `epsilon`, `sigma_sum`, `seen` (a lower bound on epsilon of
        these two, of the worker's own steps) and `secret` (an upper one, were whose
        turn it is a secret draw).

    Source: A(DP)2SGD, Theorem 2; A-05.
    """
    from dp_accounting.pld import privacy_loss_distribution

    own = accounting.own(PUBLISHED, PUBLISHED.iterations // WORKERS)
    rows = []
    for epsilon in epsilons:
        noise = least_noise(PUBLISHED, epsilon, GRID)[0]
        assert noise is not None
        z = PUBLISHED.multiplier(noise.sigma_sum, "sum")
        seen = privacy_loss_distribution.from_gaussian_mechanism(
            z,
            pessimistic_estimate=False,  # losses are rounded down
            value_discretization_interval=1e-4,
            sampling_prob=own.ratio,
            use_connect_dots=False,
        )
        secret = Pld(1e-3)  # the interval of its losses
        secret.release(PUBLISHED.iterations, Gaussian(z, PUBLISHED.ratio, "poisson"))
        composed = seen.self_compose(own.iterations)
        rows.append(
            {
                "epsilon": epsilon,
                "sigma_sum": noise.sigma_sum,
                "seen": composed.get_epsilon_for_delta(PUBLISHED.delta),
                "secret": secret.epsilon(PUBLISHED.delta),
            }
        )
    return pd.DataFrame(rows)


def epsilon_table(
    numeric: Callable[[GossipSetting, float], Numeric] = accounting.numeric,
    *,
    sigmas: Sequence[float] = (1, 2, 4),
) -> pd.DataFrame:
    """Tabulates epsilon of noise on the summed gradient, by every accounting.

    Args:
        numeric: the numeric accounting of a setting at a multiplier.
        sigmas: standard deviations on the sum; those of CIFAR-10 by default.

    Returns:
        Two rows per sigma: `sigma_sum`, `accounting` ("paper" or "own"), `rate`,
        `releases`, `multiplier`, `lemma 2` (inf where it may not be used), `conditions`
        ("hold", or those that fail), `attained`, `uniform`, `poisson`.

    Source: A(DP)2SGD, Theorem 2; section 5.2; A-01, A-05, A-06.
    """
    rows = []
    for sigma in sigmas:
        for name, one in (("paper", PUBLISHED), ("own", accounting.own(PUBLISHED))):
            multiplier = one.multiplier(sigma, "sum")
            known = numeric(one, multiplier)
            rows.append(
                {
                    "sigma_sum": sigma,
                    "accounting": name,
                    "rate": one.ratio,
                    "releases": one.iterations,
                    "multiplier": multiplier,
                    "lemma 2": achieved(one, multiplier),
                    "conditions": _said(best_order(one, multiplier)),
                    **known._asdict(),
                }
            )
    return pd.DataFrame(rows)


def remark_table(
    shares: Sequence[float] = (0.01, 0.1, 0.25, 0.5, 1),
) -> pd.DataFrame:
    """Tabulates Remark 1 and the bounds of Lemmas 2 to 4 at epsilon 10, mu 0.5.

    Args:
        shares: t / T, in (0, 1].

    Returns:
        One row per share: `t / T`, `claimed` (sqrt(t / T) epsilon), `order` that it
        needs and `largest_order` of Lemma 2, `admissible` ("yes" or "no"), `achieved`
        (the least admissible epsilon), and `unconstrained`, without the conditions.

    Source: A(DP)2SGD, Remark 1; section 4.3; A-23.
    """
    noise = theorem2(PUBLISHED, 10, 0.5)
    rows = []
    for share in shares:
        iterations = max(1, round(share * PUBLISHED.iterations))
        found = accounting.remark1(PUBLISHED, noise, iterations)
        rows.append(
            {
                "t / T": share,
                "claimed": found.claimed,
                "order": found.conditions.order,
                "largest_order": found.conditions.largest_order,
                "admissible": "yes" if found.admissible else "no",
                "achieved": found.achieved,
                "unconstrained": found.unconstrained,
            }
        )
    return pd.DataFrame(rows)


def pairing_table(num_workers: int = WORKERS) -> pd.DataFrame:
    """Tabulates the speed of pairwise averaging.

    Args:
        num_workers: K, >= 2 and even.

    Returns:
        One row per pairing and initiator: `pairing`, `initiator`, `rho`, `rho_bar`.

    Source: A(DP)2SGD, equation 6 and Theorem 1; section 2.3; A-08, A-09.
    """
    rows = []
    for initiator in reversed(get_args(pairings.Initiator)):
        for pairing in get_args(pairings.Pairing):
            rho = pairings.pairing_rho(pairing, num_workers, initiator)
            rows.append(
                {
                    "pairing": pairing,
                    "initiator": initiator,
                    "rho": rho,
                    "rho_bar": pairings.rho_bar(rho, num_workers),
                }
            )
    return pd.DataFrame(rows)


def model_table() -> pd.DataFrame:
    """Tabulates the durations of a mini-batch and a transfer of the paper's models.

    Returns:
        One row per model: `model`, `size_mb`, `hours` on one GPU, `minibatches`,
        `seconds` per mini-batch and `transfer_ms` over a link of 100 Gbit/s.

    Source: A(DP)2SGD, Table 2; section 5.4.
    """
    return pd.DataFrame(
        [
            {
                "model": model,
                "size_mb": size_mb,
                "hours": hours,
                "minibatches": count,
                "seconds": hours * 3600 / count,
                "transfer_ms": size_mb * 8e6 / (GBIT_PER_S * 1e9) * 1e3,
            }
            for model, size_mb, hours, count in MODELS
        ]
    )


def slow_table(
    num_workers: int = WORKERS, random_factor: float = 2, fixed_factor: float = 10
) -> pd.DataFrame:
    """Tabulates the cost of slow workers with and without waiting for them.

    Args:
        num_workers: K, >= 1.
        random_factor: slowdown of a random mini-batch in Case I, >= 1.
        fixed_factor: slowdown of one worker in Case II, >= 1.

    Returns:
        One row per case: `case`, `ratio` of the synchronous time to the asynchronous,
        `slow_share` of all mini-batches, `mean` and `most` staleness; nan where the
        staleness is not that of constant times.

    Source: A(DP)2SGD, section 5; section 5.5; A-12.
    """
    rows: list[dict[str, Any]] = []
    for slow in get_args(heterogeneity.Slow):
        found = heterogeneity.random_slow_throughput(num_workers, random_factor, slow)
        words = slow.replace("_", " ")
        rows.append(
            {
                "case": f"I, {words}, {random_factor:g} x",
                "ratio": found.ratio,
                "slow_share": 1 / num_workers,
                "mean": num_workers - 1,
                "most": float("nan"),
            }
        )
    for case, factor in ((f"II, {fixed_factor:g} x", fixed_factor), ("none", 1.0)):
        times = [1.0] * (num_workers - 1) + [float(factor)]
        stale = heterogeneity.constant_staleness(times)
        rows.append(
            {
                "case": case,
                "ratio": heterogeneity.constant_throughput(times).ratio,
                "slow_share": float(stale.shares[-1]),
                "mean": stale.overall,
                "most": float(stale.most.max()),
            }
        )
    return pd.DataFrame(rows)


def _said(conditions: Any) -> str:
    return f"{' and '.join(conditions.failed)} fails" if conditions.failed else "holds"
