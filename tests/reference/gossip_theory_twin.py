"""What theory says of A(DP)^2SGD: slow, plain NumPy, from the specification.

Mixing of random pairs (2.3), utility (section 3) and privacy (section 4). Theorem 1 has
eta and sigma on the SUM of a batch's gradients, Theorem 2 sigma on the MEAN (A-01).

Source: Xu, Zhang and Wang, A(DP)^2SGD: Asynchronous Decentralized Parallel Stochastic
Gradient Descent with Differential Privacy. Section numbers, (n) and A-xx are those of
the specification.
"""

from typing import NamedTuple

import numpy as np

from tests.reference.gossip_twin import check_word

PARTNERS = ("ring_neighbour", "random_receiver", "any")


def pair_matrix(i: int, j: int, num_workers: int) -> np.ndarray:
    """A of a pair's average: I - (e_i - e_j)(e_i - e_j)^T / 2, section 2.3."""
    difference = np.eye(num_workers)[i] - np.eye(num_workers)[j]
    return np.eye(num_workers) - np.outer(difference, difference) / 2.0


def mean_gram(partner: str, num_workers: int, share: float = 1.0) -> np.ndarray:
    """E[A^T A] where one pair, all equally likely, averages per iteration (A-08).

    Args:
        partner: "ring_neighbour", a uniform edge of the ring; "random_receiver", any
            sender (even position) and any receiver (odd); "any", any pair.
        num_workers: K.
        share: iterations that average at all; 1/2 if only senders initiate (A-09).
    """
    check_word("partner", partner, PARTNERS)
    K = num_workers
    pairs = [(i, j) for i in range(K) for j in range(i)]
    if partner == "ring_neighbour":
        pairs = [(i, (i + 1) % K) for i in range(K)]
    elif partner == "random_receiver":
        pairs = [(i, j) for i in range(0, K, 2) for j in range(1, K, 2)]
    grams = [pair_matrix(i, j, K).T @ pair_matrix(i, j, K) for i, j in pairs]
    return (1.0 - share) * np.eye(K) + share * np.mean(grams, axis=0)


def spectral_rho(gram: np.ndarray) -> float:
    """Rho = max(|lambda_2|, |lambda_K|) of a symmetric E[A^T A]."""
    ascending = np.linalg.eigvalsh(gram)
    return float(max(abs(ascending[-2]), abs(ascending[0])))


def rho_bar(rho: float, K: int) -> float:
    """(K - 1) / K (1 / (1 - rho) + 2 sqrt(rho) / (1 - sqrt(rho))^2), section 2.3."""
    root = np.sqrt(rho)
    return (K - 1) / K * (1.0 / (1.0 - rho) + 2.0 * root / (1.0 - root) ** 2)


def theorem1_constants(
    eta: float, B: int, L: float, K: int, tau: float, rho: float
) -> tuple[float, float, float]:
    """C1, C2, C3, for eta on the sum; asked for are C1 > 0, C2 >= 0, C3 <= 1."""
    bar = rho_bar(rho, K)
    drift = tau * (K - 1) / K + bar
    C1 = 1.0 - 24.0 * eta**2 * B**2 * L**2 * drift
    C2 = (
        -(
            eta * B * L**2 / K
            + 6.0 * eta**2 * B**2 * L**3 / K**2
            + 12.0 * eta**3 * B**3 * L**4 * tau**2 / K**3
        )
        * (4.0 * eta**2 * B**2 * drift / C1)
        + eta * B / (2.0 * K)
        - eta**2 * B**2 * L / K**2
        - 2.0 * eta**3 * B**3 * L**2 * tau**2 / K**3
    )
    C3 = (
        0.5
        + eta * B * L * tau**2 / K
        + (
            6.0 * eta**2 * B**2 * L**2
            + eta * K * B * L
            + 12.0 * eta**3 * B**3 * L**3 * tau**2 / K
        )
        * (2.0 * bar / C1)
    )
    return C1, C2, C3


def theorem1_bound(
    gap: float,
    eta: float,
    T: int,
    B: int,
    L: float,
    K: int,
    within: float,
    across: float,
    d: int,
    sigma: float,
) -> float:
    """Theorem 1's bound on the mean of |grad F(theta^t)|^2, t < T.

    `gap` is F(w0) - F*, `within` varsigma^2, `across` upsilon^2; eta, sigma on the sum.
    """
    noise = within * B + 6.0 * across * B**2 + d * sigma**2
    return 2.0 * gap * K / (eta * T * B) + 2.0 * eta * L / (B * K) * noise


def proposition1_threshold(L: float, K: int, tau: float, rho: float) -> float:
    """The least T of Proposition 1."""
    bar = rho_bar(rho, K)
    last = np.sqrt(K - 1) / K ** (1 / 6) * (8 * np.sqrt(6) * tau ** (2 / 3) + 8) ** 2
    terms = (
        192.0 * (tau * (K - 1) / K + bar),
        1024.0 * K**2 * bar**2,
        64.0 * tau**2 / K**2,
        last * (tau + bar * K / (K - 1)) ** (2 / 3),
    )
    return float(L**2 * K**2 * max(terms))


class Choice(NamedTuple):
    """A split mu, its Renyi order, and sigma on the MEAN gradient, section 4.2."""

    mu: float
    alpha: float
    sigma: float


def alpha(eps: float, delta: float, mu: float) -> float:
    """Renyi order of Theorem 2."""
    return float(np.log(1.0 / delta) / ((1.0 - mu) * eps) + 1.0)


def sigma_squared(
    eps: float, delta: float, mu: float, G: float, T: int, K: int, n1: int
) -> float:
    """Noise variance of Theorem 2, on the mean gradient (sensitivity 2 G / B)."""
    return 20.0 * G**2 * T * alpha(eps, delta, mu) / (K**2 * n1**2 * mu * eps)


def conditions(
    eps: float, delta: float, mu: float, T: int, K: int, n1: int, B: int
) -> tuple[bool, bool]:
    """Whether each of the two conditions (7) holds, as printed."""
    order = alpha(eps, delta, mu)
    kn = K * n1
    most = 10.0 * B**2 * T * order / (3.0 * kn**2 * mu)
    inside = kn**3 * mu * eps / (kn**2 * mu * eps * B + 5.0 * T * order * B**3)
    return bool(eps <= most), bool(order <= np.log(inside))


def search_mu(
    eps: float,
    delta: float,
    G: float,
    T: int,
    K: int,
    n1: int,
    B: int,
    num_grid: int = 99,
) -> Choice | None:
    """The mu of smallest sigma among num_grid evenly spaced; None if none (A-06)."""
    choices = [
        Choice(
            mu,
            alpha(eps, delta, mu),
            np.sqrt(sigma_squared(eps, delta, mu, G, T, K, n1)),
        )
        for mu in np.arange(1, num_grid + 1) / (num_grid + 1)
        if all(conditions(eps, delta, mu, T, K, n1, B))
    ]
    return min(choices, key=lambda choice: choice.sigma, default=None)


def smallest_admissible_epsilon(
    delta: float, T: int, K: int, n1: int, B: int, num_grid: int = 99
) -> float:
    """Least epsilon, to 1e-9, that has an admissible mu on the grid; inf if none.

    At fixed mu, alpha and sigma fall with epsilon: the second condition holds from some
    epsilon on, the first up to some epsilon. So the first is asked where the second
    begins, which is found by bisection.
    """
    best = np.inf
    for mu in np.arange(1, num_grid + 1) / (num_grid + 1):
        low, high = 1e-6, 1e6
        if not conditions(high, delta, mu, T, K, n1, B)[1]:
            continue
        while high - low > 1e-9 * high:
            middle = np.sqrt(low * high)
            if conditions(middle, delta, mu, T, K, n1, B)[1]:
                high = middle
            else:
                low = middle
        if conditions(high, delta, mu, T, K, n1, B)[0]:
            best = min(best, high)
    return float(best)


def best_epsilon(
    steps: float, rate: float, ratio: float, delta: float, lemma2: bool = True
) -> float:
    """Least epsilon of `steps` subsampled Gaussian steps, by Lemmas 2, 3 and 4.

    Args:
        steps: how many are composed.
        rate: gamma, of the subsample.
        ratio: sigma^2 / sensitivity^2.
        delta: of the (epsilon, delta).
        lemma2: whether alpha keeps to Lemma 2's bound; False minimises over all
            alpha > 1, which is no guarantee.

    Returns:
        min over alpha of cost alpha + log(1/delta) / (alpha - 1), which is convex; inf
        if Lemma 2 admits nothing.
    """
    cost = 5.0 * rate**2 * steps / ratio
    order = 1.0 + np.sqrt(np.log(1.0 / delta) / cost)
    if lemma2:
        order = min(order, largest_order(rate, ratio))
        if ratio < 1.5 or order <= 1.0:
            return float(np.inf)
    return float(cost * order + np.log(1.0 / delta) / (order - 1.0))


def largest_order(rate: float, ratio: float) -> float:
    """Lemma 2's bound on alpha: log(1 / (gamma (1 + sigma^2 / sensitivity^2)))."""
    return float(-np.log(rate * (1.0 + ratio)))


class Remark1(NamedTuple):
    """Epsilon of the models at iteration t, section 4.3.

    Attributes:
        best: least epsilon with an order that Lemma 2 admits.
        best_any_order: the same over all orders > 1.
        claimed: sqrt(t / T) eps.
        order: alpha_t = 1 + (alpha - 1) sqrt(T / t), from which the claim follows.
        order_admissible: whether Lemma 2 admits alpha_t (A-23).
    """

    best: float
    best_any_order: float
    claimed: float
    order: float
    order_admissible: bool


def remark1(
    t: float, T: int, eps: float, delta: float, mu: float, K: int, n1: int, B: int
) -> Remark1:
    """Remark 1 at iteration t, sigma of Theorem 2 for (eps, delta, mu) after T."""
    rate = B / (K * n1)
    ratio = sigma_squared(eps, delta, mu, 1.0, T, K, n1) / (2.0 / B) ** 2
    order = 1.0 + (alpha(eps, delta, mu) - 1.0) * np.sqrt(T / t)
    return Remark1(
        best_epsilon(t, rate, ratio, delta),
        best_epsilon(t, rate, ratio, delta, lemma2=False),
        float(np.sqrt(t / T) * eps),
        float(order),
        bool(ratio >= 1.5 and order <= largest_order(rate, ratio)),
    )
