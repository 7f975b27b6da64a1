"""A(DP)2SGD's privacy theory: the numbers of its specification, and where it ends."""

import dataclasses
import math
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from evidence.theory.accounting import PUBLISHED, own, unconstrained
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.privacy import adp2sgd
from stalesim.simulator.privacy.adp2sgd import GossipSetting, sensitivity

LOG = math.log(1e5)
"""log(1 / delta)"""
SMALL = GossipSetting(
    num_workers=3, num_samples=40, batch=8, iterations=90, lipschitz=2.0
)


def lemma2(order: float, multiplier: float, ratio: float) -> float:
    """Returns Lemma 2's bound without replacement, 5 gamma^2 alpha / z^2."""
    return 5 * ratio**2 * order / multiplier**2


def printed(value: float, digits: str) -> bool:
    """Says whether a value is one that is printed, to half a unit of its last digit."""
    return f"{value:.{len(digits.partition('.')[2])}f}" == digits


def of_sum(sigma: float, setting: GossipSetting = PUBLISHED) -> float:
    return adp2sgd.achieved(setting, setting.multiplier(sigma, "sum"))


def test_noise_and_sensitivity_grow_together_from_the_mean_to_the_sum() -> None:
    assert PUBLISHED.ratio == pytest.approx(0.00512)  # section 4.2
    assert sensitivity(3.0, 8, "sum") == 6
    assert sensitivity(3.0, 8, "mean") == 0.75
    assert SMALL.multiplier(4.0, "sum") == SMALL.multiplier(0.5, "mean") == 1
    # The paper's mixture: the noise is on the sum, the sensitivity a mean's.
    assert sensitivity(3.0, 8, "sum", "paper") == 0.75
    assert SMALL.multiplier(4.0, "sum", "paper") == 8
    assert SMALL.multiplier(0.5, "mean", "paper") == 1


# Lemmas 2 to 4


@pytest.mark.parametrize(
    ("order", "multiplier", "failed"),
    [
        (3.0, 2.0, ()),
        (3.0, 1.2, ("noise",)),
        (4.0, 2.0, ("order",)),
        (32.0, 1.2, ("noise", "order")),
        (1.001, 8.3, ()),
        (1.001, 8.5, ("order",)),
    ],
)
def test_lemma_2_says_what_fails(
    order: float, multiplier: float, failed: tuple[str, ...]
) -> None:
    found = adp2sgd.conditions(order, multiplier, 0.00512)
    assert (found.failed, found.hold) == (failed, not failed)
    largest = math.log(1 / (0.00512 * (1 + multiplier**2)))
    assert found.largest_order == pytest.approx(largest, rel=1e-12)
    parts = found.why.split("; ")
    assert [part.split(":")[0] for part in parts if part] == [*failed]


def test_what_the_conditions_ask_for_is_said() -> None:
    assert adp2sgd.conditions(5.0, 1.0, 0.1).why == (
        "noise: sigma^2 / sensitivity^2 must be >= 1.5, got 1; "
        "order: alpha must be > 1 and <= 1.609, got 5"
    )
    assert "got none" in adp2sgd.conditions(math.nan, 2.0, 0.5).why


def test_divergences_become_an_epsilon() -> None:
    assert adp2sgd.to_epsilon(2.0, 3.0, 1e-5) == pytest.approx(2 + LOG / 2)
    order = adp2sgd.order_of(0.3, 10.0, 1e-5)
    assert LOG / (order - 1) == pytest.approx(7)


# Theorem 2


@pytest.mark.parametrize(
    ("epsilon", "mu", "order", "mean", "whole", "failed"),
    [
        (1, 0.5, "24.03", "0.1501", "38.4", ("order",)),
        (4, 0.5, "6.76", "0.0398", "10.2", ("order",)),
        (8, 0.5, "3.88", "0.0213", "5.46", ("order",)),
        (10, 0.5, "3.3026", "0.017596", "4.50", ()),
        (12, 0.59, "3.34", "0.0149", "3.81", ()),
        (16, 0.61, "2.85", "0.0117", "2.99", ()),
        (20, 0.62, "2.51", "0.0098", "2.50", ()),
    ],
)
def test_the_table_of_theorem_2(
    epsilon: float,
    mu: float,
    order: str,
    mean: str,
    whole: str,
    failed: tuple[str, ...],
) -> None:
    """Section 4.2; the least noise where any mu is admissible, but at 10."""
    found = adp2sgd.theorem2(PUBLISHED, epsilon, mu)
    assert printed(found.conditions.order, order)
    assert printed(found.sigma_mean, mean)
    assert printed(found.sigma_sum, whole)
    assert found.conditions.failed == failed
    best = adp2sgd.least_noise(PUBLISHED, epsilon)[0]
    assert best is None if failed else best and best.mu == (0.53 if mu == 0.5 else mu)


@pytest.mark.parametrize(
    "setting", [PUBLISHED, own(PUBLISHED), SMALL], ids=["published", "own", "small"]
)
@pytest.mark.parametrize("epsilon", [0.5, 10.0, 200.0])
@pytest.mark.parametrize("mu", [0.1, 0.5, 0.9])
def test_the_parts_of_theorem_2_are_shares_of_epsilon(
    setting: GossipSetting, epsilon: float, mu: float
) -> None:
    noise = adp2sgd.theorem2(setting, epsilon, mu)
    z = setting.multiplier(noise.sigma_mean, "mean")
    assert setting.multiplier(noise.sigma_sum, "sum") == pytest.approx(z, rel=1e-12)
    T, alpha = setting.iterations, noise.conditions.order
    total = T * lemma2(alpha, z, setting.ratio)
    assert total == pytest.approx(mu * epsilon, rel=1e-12)
    together = adp2sgd.to_epsilon(total, alpha, setting.delta)
    assert together == pytest.approx(epsilon, rel=1e-12)
    # Equation 7 as it is printed.
    B, data = setting.batch, setting.num_workers * setting.num_samples
    first = 10 * B**2 * T * alpha / (3 * data**2 * mu)
    below = data**2 * mu * epsilon * B + 5 * T * alpha * B**3
    second = math.log(data**3 * mu * epsilon / below)
    assert ("noise" in noise.conditions.failed) == (epsilon > first)
    assert noise.conditions.largest_order == pytest.approx(second, rel=1e-9)
    assert ("order" in noise.conditions.failed) == (alpha > second)


@pytest.mark.parametrize("epsilon", [10, 12, 16, 20])
def test_the_search_finds_the_least_admissible_noise(epsilon: float) -> None:
    best, why = adp2sgd.least_noise(PUBLISHED, epsilon)
    assert best is not None
    assert why == ""
    every = [adp2sgd.theorem2(PUBLISHED, epsilon, mu) for mu in adp2sgd.GRID]
    holding = [noise.sigma_mean for noise in every if noise.conditions.hold]
    assert best.sigma_mean == min(holding)
    # The inverse gives the target back, but for what a grid 0.01 wide can lose.
    back = of_sum(best.sigma_sum)
    assert back <= epsilon * (1 + 1e-12)
    assert back == pytest.approx(epsilon, rel=2e-3)


@pytest.mark.parametrize("epsilon", [1, 8.3])
def test_no_admissible_mu_is_a_result(epsilon: float) -> None:
    best, why = adp2sgd.least_noise(PUBLISHED, epsilon)
    assert best is None
    assert f"no mu of 99 is admissible at epsilon {epsilon:g}" in why
    assert "order: alpha must be > 1 and <=" in why


def test_the_first_condition_can_fail_alone() -> None:
    best, why = adp2sgd.least_noise(PUBLISHED, 40.0, grid=(0.5, 0.6))
    assert best is None
    assert "fails noise: sigma^2 / sensitivity^2 must be >= 1.5" in why
    assert adp2sgd.least_noise(PUBLISHED, 40.0)[0] is not None


@pytest.mark.parametrize(
    ("batch", "least"),
    [
        (256, 8.344),  # "8.36" and "8.4" in print: 8.36 is that of a grid of 0.05
        (32, 3.38),
        (8, 2.26),
        (1, 1.46),
    ],
)
def test_the_smallest_admissible_epsilon(batch: int, least: float) -> None:
    setting = dataclasses.replace(
        PUBLISHED, batch=batch, iterations=300 * 50_000 // batch
    )
    found = adp2sgd.smallest_epsilon(setting)
    assert found == pytest.approx(least, abs=5e-3)
    # It is on the edge: of a fine grid of mu, by the other direction.
    fine = np.linspace(0.001, 0.999, 9981).tolist()
    assert adp2sgd.least_noise(setting, found * 1.0005, fine)[0] is not None
    assert adp2sgd.least_noise(setting, found * 0.9995, fine)[0] is None


def test_the_smallest_epsilon_of_own_steps_and_of_none() -> None:
    found = adp2sgd.smallest_epsilon(own(PUBLISHED))
    assert found == pytest.approx(106.8, abs=0.05)
    whole = GossipSetting(num_workers=1, num_samples=8, batch=8, iterations=5)
    assert adp2sgd.smallest_epsilon(whole) == math.inf
    why = adp2sgd.best_order(whole, 2.0).why
    assert why.startswith("order: alpha must be > 1")


# the inverse


def test_the_epsilon_of_a_noise() -> None:
    # section 5.2: 11.3 for sigma = 4, none for 1 and 2
    z = PUBLISHED.multiplier(4.0, "sum")
    assert of_sum(4.0) == pytest.approx(11.3, abs=0.05)
    assert of_sum(4.0) == pytest.approx(unconstrained(PUBLISHED, z), rel=1e-12)
    for sigma in (1.0, 2.0):
        z = PUBLISHED.multiplier(sigma, "sum")
        assert of_sum(sigma) == math.inf
        assert adp2sgd.best_order(PUBLISHED, z).failed == ("noise",)
        assert unconstrained(PUBLISHED, z) < math.inf
    alone = own(PUBLISHED)
    found = adp2sgd.best_order(alone, alone.multiplier(4.0, "sum"))
    assert found.failed == ("order",)
    assert math.isnan(found.order)
    mixture = PUBLISHED.multiplier(4.0, "sum", "paper")
    assert adp2sgd.achieved(PUBLISHED, mixture) == math.inf


@pytest.mark.parametrize("sigma", [2.5, 4.0, 10.0])
@pytest.mark.parametrize("iterations", [1, 1000, 58_593])
def test_the_best_order_is_the_best(sigma: float, iterations: int) -> None:
    setting = dataclasses.replace(PUBLISHED, iterations=iterations)
    z = setting.multiplier(sigma, "sum")
    found = adp2sgd.achieved(setting, z)
    largest = adp2sgd.best_order(setting, z).largest_order
    orders = np.linspace(1, largest, 20_001)[1:]
    values = iterations * lemma2(1, z, setting.ratio) * orders + LOG / (orders - 1)
    assert found <= values.min() * (1 + 1e-12)
    assert found == pytest.approx(values.min(), rel=1e-6)
    assert unconstrained(setting, z) <= found * (1 + 1e-12)


# borders


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (GossipSetting, (0, 9, 3, 9), "num_workers must be >= 1, got 0; "),
        (GossipSetting, (1, 9, 0, 9), "batch must be >= 1, got 0; "),
        (GossipSetting, (1, 9, 3, 0), "iterations must be >= 1, got 0; "),
        (GossipSetting, (1, 2, 3, 9), r"num_samples must be >= batch \(3\), got 2; "),
        (GossipSetting, (1, 9, 3, 9, 0.0), "lipschitz must be > 0 and finite, got 0.0"),
        (GossipSetting, (1, 9, 3, 9, math.inf), "lipschitz must be .* got inf"),
        (GossipSetting, (1, 9, 3, 9, 1.0, 0.0), r"delta must be in \(0, 1\), got 0.0"),
        (GossipSetting, (1, 9, 3, 9, 1.0, 1.0), r"delta must be in \(0, 1\), got 1.0"),
        (SMALL.multiplier, (0.0, "sum"), "sigma must be > 0 and finite, got 0.0"),
        (adp2sgd.conditions, (2.0, 0.0, 0.1), "multiplier must be > 0"),
        (adp2sgd.conditions, (2.0, 2.0, 0.0), r"ratio must be in \(0, 1"),
        (adp2sgd.order_of, (0.0, 1.0, 0.1), r"mu must be in .* got 0.0; "),
        (adp2sgd.order_of, (1.0, 1.0, 0.1), r"mu must be in .* got 1.0; "),
        (adp2sgd.theorem2, (SMALL, 0.0, 0.5), "epsilon must be > 0"),
        (adp2sgd.least_noise, (SMALL, 1.0, ()), "grid must have a value"),
        (adp2sgd.least_noise, (SMALL, math.nan), "epsilon must be .* nan"),
        (adp2sgd.achieved, (SMALL, 0.0), "multiplier must be > 0"),
    ],
)
def test_mistakes_are_named_in_one_line(
    call: Callable[..., object], given: tuple, message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        call(*given)
    assert "\n" not in str(caught.value)
    assert "; " in str(caught.value)


def test_nothing_imports_dp_accounting_before_it_is_needed() -> None:
    code = (
        "import sys; from stalesim.simulator.privacy import budgets; "
        "from stalesim.simulator.privacy.accountants import Optimal; "
        "from stalesim.simulator.privacy import adp2sgd; "
        "from stalesim.simulator.privacy.releases import Pure; "
        "setting = adp2sgd.GossipSetting(16, 3125, 256, 58_593); "
        "adp2sgd.least_noise(setting, 10.0); adp2sgd.achieved(setting, 2.0); "
        "a = Optimal(); a.release(9, Pure(0.1)); a.epsilon(1e-5); "
        "wrong = {'dp_accounting', 'jax', 'pandas', 'simpy'} & set(sys.modules); "
        "sys.exit(str(wrong) if wrong else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
