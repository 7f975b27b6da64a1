"""The gossip theory twin alone: the numbers that the specification prints."""

import numpy as np
import pytest

from tests.reference import gossip_theory_twin as theory

CIFAR = {"T": 58_593, "K": 16, "n1": 3125, "B": 256}
DELTA = 1e-5


@pytest.mark.parametrize(
    ("partner", "share", "rho", "bar"),
    [
        ("ring_neighbour", 1.0, 0.99524, 3.30e5),
        ("random_receiver", 1.0, 0.93750, 1815.5),
        ("any", 1.0, 0.93333, 1589.5),
        ("random_receiver", 0.5, 0.96875, None),
    ],
)
def test_mixing_of_section_2_3(
    partner: str, share: float, rho: float, bar: float | None
):
    gram = theory.mean_gram(partner, 16, share)
    np.testing.assert_allclose(gram.sum(axis=0), 1.0, rtol=1e-12)
    assert theory.spectral_rho(gram) == pytest.approx(rho, abs=5e-6)
    if bar is not None:
        assert theory.rho_bar(theory.spectral_rho(gram), 16) == pytest.approx(
            bar, rel=2e-4
        )


def test_a_pair_matrix_is_a_symmetric_doubly_stochastic_projection():
    A = theory.pair_matrix(3, 1, 4)
    np.testing.assert_array_equal(A, A.T)
    np.testing.assert_array_equal(A.T @ A, A)
    np.testing.assert_array_equal(A.sum(axis=0), np.ones(4))


@pytest.mark.parametrize(
    ("eta", "expected"),
    [
        (1e-6, (0.99999930, 1.24999908e-7, 0.73244450)),
        (1e-5, (0.9999297, 1.2499645e-6, 2.824638)),
    ],
)
def test_constants_of_theorem_1(eta: float, expected: tuple[float, float, float]):
    found = theory.theorem1_constants(eta, 4, 1.0, 16, 16.0, 0.9375)
    assert found == pytest.approx(expected, rel=5e-8)


def test_constants_of_theorem_1_by_hand():
    # eta B L = 1/8, rho_bar = 1/2, tau (K - 1) / K + rho_bar = 3/2, every term seen.
    # L C2 = -(16 + 6 + 3) / 256 * 3 / 14 + (8 - 1 - 1/2) / 256.
    found = theory.theorem1_constants(1 / 64, 2, 4.0, 2, 2.0, 0.0)
    assert found == pytest.approx((7 / 16, 1 / 896, 23 / 14), rel=1e-13)


def test_last_term_of_proposition_1_by_hand():
    # K = 2, tau = 1, rho_bar = 1/2: (8 sqrt(6) + 8)^2 2^(2/3 - 1/6), above 1024.
    least = theory.proposition1_threshold(3.0, 2, 1.0, 0.0)
    expected = 9 * 4 * 64 * (7 + 2 * np.sqrt(6)) * np.sqrt(2)
    assert least == pytest.approx(expected, rel=1e-13)


def test_rho_looks_at_both_ends():
    # A ring of four that keeps a tenth: eigenvalues 1, 0.1, 0.1, -0.8.
    eye = np.eye(4)
    ring = 0.1 * eye + 0.45 * (np.roll(eye, 1, axis=0) + np.roll(eye, -1, axis=0))
    assert theory.spectral_rho(ring) == pytest.approx(0.8)


def test_proposition_1():
    least = theory.proposition1_threshold(1.0, 16, 16.0, 0.9375)
    assert least == pytest.approx(2.2e14, rel=0.01)
    T, B, gap, L, within, across, d, sigma = 10_000, 5, 3.0, 2.0, 0.5, 0.25, 7, 4.0
    bound = theory.theorem1_bound(
        gap, 16 / (B * np.sqrt(T)), T, B, L, 16, within, across, d, sigma
    )
    noise = within / B + 6.0 * across + d * sigma**2 / B**2
    assert bound == pytest.approx((2 * gap + 2 * L * noise) / np.sqrt(T), rel=1e-13)


# Printed in section 4.2: epsilon, mu, alpha, sigma on the mean, on the sum, both hold.
TABLE = [
    (1, 0.50, 24.03, 0.1501, 38.4, False),
    (4, 0.50, 6.76, 0.0398, 10.2, False),
    (8, 0.50, 3.88, 0.0213, 5.46, False),
    (10, 0.50, 3.30, 0.0176, 4.50, True),
    (12, 0.59, 3.34, 0.0149, 3.81, True),
    (16, 0.61, 2.85, 0.0117, 2.99, True),
    (20, 0.62, 2.51, 0.0098, 2.50, True),
]


@pytest.mark.parametrize(("eps", "mu", "order", "on_mean", "on_sum", "both"), TABLE)
def test_theorem_2(
    eps: float, mu: float, order: float, on_mean: float, on_sum: float, both: bool
):
    sigma = np.sqrt(theory.sigma_squared(eps, DELTA, mu, 1.0, 58_593, 16, 3125))
    # Half a unit of the last printed digit, and 2.8450 is printed as 2.85.
    assert theory.alpha(eps, DELTA, mu) == pytest.approx(order, abs=5.1e-3)
    assert sigma == pytest.approx(on_mean, abs=5e-5)
    assert sigma * 256 == pytest.approx(on_sum, rel=2e-3)
    assert theory.conditions(eps, DELTA, mu, **CIFAR) == (True, both)


def test_theorem_2_at_epsilon_10_in_full():
    assert theory.alpha(10.0, DELTA, 0.5) == pytest.approx(3.3026, abs=5e-5)
    square = theory.sigma_squared(10.0, DELTA, 0.5, 1.0, 58_593, 16, 3125)
    assert square == pytest.approx(3.09613e-4, rel=2e-6)


@pytest.mark.parametrize("mu", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("eps", [2.0, 9.0, 40.0, 400.0])
def test_conditions_are_those_of_lemma_2(eps: float, mu: float):
    rate = 256 / (16 * 3125)
    square = theory.sigma_squared(eps, DELTA, mu, 1.0, 58_593, 16, 3125)
    ratio = square / (2 / 256) ** 2
    expected = (
        ratio >= 1.5,
        theory.alpha(eps, DELTA, mu) <= theory.largest_order(rate, ratio),
    )
    assert theory.conditions(eps, DELTA, mu, **CIFAR) == expected


@pytest.mark.parametrize(
    ("eps", "mu"),
    [(1, None), (8, None), (10, 0.53), (12, 0.59), (16, 0.61), (20, 0.62)],
)
def test_search_of_mu(eps: float, mu: float | None):
    # At epsilon 10 the table has 0.5, which is admissible but not the smallest sigma.
    choice = theory.search_mu(eps, DELTA, G=1.0, **CIFAR)
    assert (None if choice is None else choice.mu) == pytest.approx(mu)


@pytest.mark.parametrize(
    ("batch", "expected", "tolerance"),
    [(256, 8.36, 0.05), (32, 3.4, 0.05), (8, 2.3, 0.05), (1, 1.5, 0.05)],
)
def test_smallest_admissible_epsilon(batch: int, expected: float, tolerance: float):
    # 300 epochs of 50,000 samples. Found: 8.344, 3.381, 2.259, 1.458.
    setting = {"T": 15_000_000 // batch, "K": 16, "n1": 3125, "B": batch}
    least = theory.smallest_admissible_epsilon(DELTA, **setting)
    assert least == pytest.approx(expected, abs=tolerance)
    assert theory.search_mu(least * 0.99, DELTA, G=1.0, **setting) is None
    assert theory.search_mu(least * 1.001, DELTA, G=1.0, **setting) is not None


def test_one_step_is_never_admissible():
    # Enough noise (first condition) would need epsilon mu <= 9e-5 alpha, alpha < 4.4.
    setting = {**CIFAR, "T": 1}
    assert theory.smallest_admissible_epsilon(DELTA, **setting) == np.inf
    assert theory.search_mu(10.0, DELTA, G=1.0, **setting) is None


@pytest.mark.parametrize(
    ("fraction", "any_order", "admitted", "claimed"),
    [
        (0.01, 0.850, 4.712, 1.00),
        (0.1, 2.79, 5.185, 3.16),
        (0.25, 4.55, 5.973, 5.00),
        (0.5, 6.66, 7.287, 7.07),
        (1.0, 9.86, 9.914, 10.0),
    ],
)
def test_remark_1(fraction: float, any_order: float, admitted: float, claimed: float):
    # "best achievable" in section 4.3 is over all orders; Lemma 2 admits up to 3.47.
    found = theory.remark1(58_593 * fraction, eps=10.0, delta=DELTA, mu=0.5, **CIFAR)
    assert found.best_any_order == pytest.approx(any_order, abs=6e-3)
    assert found.best == pytest.approx(admitted, abs=1e-3)
    assert found.claimed == pytest.approx(claimed, abs=3e-3)
    assert found.order_admissible == (fraction == 1.0)
    assert found.best_any_order <= found.best
    # With alpha_t, eps_t = sqrt(t/T) eps - cost (sqrt(t/T) - t/T) <= claimed.
    cost = 0.5 * 10.0 / theory.alpha(10.0, DELTA, 0.5)
    at_order = cost * fraction * found.order + np.log(1 / DELTA) / (found.order - 1.0)
    assert at_order == pytest.approx(
        found.claimed - cost * (np.sqrt(fraction) - fraction)
    )


def test_experiments_of_section_5_2():
    # sigma 4, 2, 1 on the sum, whose sensitivity is 2 G = 2.
    rate = 256 / (16 * 3125)
    assert theory.best_epsilon(58_593, rate, 4.0, DELTA) == pytest.approx(
        11.3, abs=0.05
    )
    assert theory.best_epsilon(58_593, rate, 1.0, DELTA) == np.inf
    assert theory.best_epsilon(58_593, rate, 0.25, DELTA) == np.inf


@pytest.mark.parametrize(
    ("sigma", "on_sum", "on_mean"),
    [(1.0, 0.017, 4.4), (2.0, 0.035, 8.8), (4.0, 0.069, 17.7)],
)
def test_accumulated_noise_of_section_5_2(sigma: float, on_sum: float, on_mean: float):
    # theta moves by eta / K per update; 160 epochs are 31,250 updates of 256 samples.
    deviation = 0.4 / 16 * sigma * np.sqrt(160 * 50_000 / 256)
    assert deviation / 256 == pytest.approx(on_sum, abs=5e-4)
    assert deviation == pytest.approx(on_mean, abs=0.05)


def test_refuses_an_unknown_partner():
    with pytest.raises(ValueError, match="partner must be"):
        theory.mean_gram("both", 16)
