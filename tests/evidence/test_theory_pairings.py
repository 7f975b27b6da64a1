"""Pairings of A(DP)2SGD: expected averaging matrices, rho and rho_bar."""

import math
from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import pytest

from evidence.theory import pairings
from evidence.theory.pairings import Initiator, Pairing
from stalesim.analysis.theory import gossip

K = 16


def _exchange(num_workers: int, i: int, j: int) -> np.ndarray:
    difference = np.zeros(num_workers)
    difference[i], difference[j] = 1, -1
    return np.eye(num_workers) - np.outer(difference, difference) / 2


def test_an_averaging_is_a_projection_that_keeps_the_mean() -> None:
    A = _exchange(5, 1, 3)
    np.testing.assert_array_equal(A, A.T)
    np.testing.assert_allclose(A.T @ A, A)
    np.testing.assert_allclose(A.sum(axis=0), 1)
    models = np.arange(10.0).reshape(2, 5)
    np.testing.assert_allclose((models @ A).mean(axis=1), models.mean(axis=1))


@pytest.mark.parametrize(
    ("pairing", "initiator", "rho", "rho_bar"),
    [
        # section 2.3
        ("ring_neighbour", "every", "0.99524", 3.30e5),
        ("random_receiver", "every", "0.93750", 1815.5),
        ("any", "every", "0.93333", 1589.5),
        ("random_receiver", "sender", "0.96875", 7470.5),
    ],
)
def test_the_spectral_table(
    pairing: Pairing, initiator: Initiator, rho: str, rho_bar: float
) -> None:
    found = pairings.pairing_rho(pairing, K, initiator)
    assert f"{found:.5f}" == rho
    digits = 500 if rho_bar > 1e5 else 0.05
    assert pairings.rho_bar(found, K) == pytest.approx(rho_bar, abs=digits)


def test_rho_in_closed_form() -> None:
    for n in (4, 10, 16):
        ring = 1 - (1 - math.cos(2 * math.pi / n)) / n
        assert pairings.pairing_rho("ring_neighbour", n) == pytest.approx(ring)
        # Half of the iterations average nothing.
        half = pairings.pairing_rho("ring_neighbour", n, "sender")
        assert half == pytest.approx((1 + ring) / 2)
        any_pair = 1 - 1 / (n - 1)
        assert pairings.pairing_rho("any", n) == pytest.approx(any_pair)
        # Senders and receivers: 1 - (K / 2) / (2 (K / 2)^2).
        across = 1 - 1 / n
        assert pairings.pairing_rho("random_receiver", n) == pytest.approx(across)
    assert pairings.pairing_rho("any", 2) == pytest.approx(0, abs=1e-12)
    assert pairings.pairing_rho("ring_neighbour", 2) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("pairing", "edges"),
    [
        ("random_receiver", list(product(range(0, 8, 2), range(1, 8, 2)))),
        ("ring_neighbour", [(k, (k + 1) % 8) for k in range(8)]),
        ("any", list(combinations(range(8), 2))),
    ],
)
def test_equal_workers_draw_edges_uniformly(
    pairing: Pairing, edges: list[tuple[int, int]]
) -> None:
    law = pairings.partner_law(pairing, 8)
    np.testing.assert_allclose(law.sum(axis=1), 1)
    expected = pairings.expected_initiated_averaging(np.full(8, 1 / 8), law)
    np.testing.assert_allclose(
        expected, gossip.expected_pairwise_averaging(8, edges), atol=1e-15
    )


@pytest.mark.parametrize("pairing", ["random_receiver", "ring_neighbour", "any"])
@pytest.mark.parametrize("initiator", ["sender", "every"])
def test_the_expected_matrix_is_the_mean_over_who_and_with_whom(
    pairing: Pairing, initiator: Initiator
) -> None:
    shares = np.array([0.4, 0.1, 0.05, 0.15, 0.2, 0.1])
    law = pairings.partner_law(pairing, 6, initiator)
    mean = np.zeros((6, 6))
    for k, share in enumerate(shares):
        mean += share * (1 - law[k].sum()) * np.eye(6)
        for j in range(6):
            mean += share * law[k, j] * _exchange(6, min(k, j), max(k, j) or 1)
    found = pairings.expected_initiated_averaging(shares, law)
    np.testing.assert_allclose(found, mean, atol=1e-14)
    np.testing.assert_allclose(found, found.T)
    eigenvalues = np.sort(np.abs(np.linalg.eigvalsh(mean)))
    rho = pairings.pairing_rho(pairing, 6, initiator, shares)
    assert rho == pytest.approx(eigenvalues[-2])
    if initiator == "sender":
        np.testing.assert_array_equal(law[1::2], 0)


def test_a_slow_worker_spreads_less() -> None:
    shares = np.append(np.full(15, 1 / 15.1), 0.1 / 15.1)
    slow = pairings.pairing_rho("random_receiver", K, "every", shares)
    assert 0.9375 < slow < 0.97


def test_disagreement_shrinks_by_rho() -> None:
    """Mean of |x A|^2 over drawn pairs, of the mode that shrinks least."""
    law = pairings.partner_law("random_receiver", 6)
    expected = pairings.expected_initiated_averaging(np.full(6, 1 / 6), law)
    values, vectors = np.linalg.eigh(expected)
    mode = vectors[:, -2]
    found = np.mean(
        [
            np.sum((mode @ _exchange(6, sender, receiver)) ** 2)
            for sender, receiver in product((0, 2, 4), (1, 3, 5))
        ]
    )
    assert found == pytest.approx(values[-2])
    rho = pairings.pairing_rho("random_receiver", 6)
    assert found == pytest.approx(rho)


def test_rho_bar_at_its_ends() -> None:
    assert pairings.rho_bar(0.0, 4) == 0.75
    assert pairings.rho_bar(0.25, 2) == pytest.approx((4 / 3 + 4) / 2)
    assert pairings.rho_bar(0.5, 1) == 0
    with pytest.raises(ValueError, match=r"rho must be in \[0, 1\), got 1.0; connect"):
        pairings.rho_bar(1.0, 4)
    # Who never has a turn agrees with nobody.
    law = np.zeros((3, 3))
    law[0, 1] = 1
    apart = pairings.expected_initiated_averaging([1, 0, 0], law)
    assert gossip.spectral_gap(apart) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: pairings.partner_law("any", 1),
            "num_workers must be >= 2, got 1; ",
        ),
        (
            lambda: pairings.partner_law("ring_neighbour", 5, "sender"),
            "num_workers must be even for senders on a ring, got 5; ",
        ),
        (
            lambda: pairings.partner_law("star", 5),  # pyright: ignore
            "pairing must be one of random_receiver, .* got 'star'; ",
        ),
        (
            lambda: pairings.partner_law("any", 5, "all"),  # pyright: ignore
            "initiator must be one of sender, every, got 'all'; ",
        ),
        (
            lambda: pairings.expected_initiated_averaging([1.0], np.zeros((2, 2))),
            r"partners must be of shape \(1, 1\), got \(2, 2\); ",
        ),
        (
            lambda: pairings.expected_initiated_averaging([0.5, 0.6], np.zeros((2, 2))),
            r"shares must be >= 0 and of sum 1, got \[0.5, 0.6\]; ",
        ),
        (
            lambda: pairings.expected_initiated_averaging([0.5, 0.5], np.eye(2)),
            "partners must have .* a diagonal of 0, got .*; ",
        ),
        (
            lambda: pairings.expected_initiated_averaging(
                [0.5, 0.5], np.array([[0, 1.5], [0, 0]])
            ),
            "partners must have .* rows of sum <= 1",
        ),
        (lambda: pairings.rho_bar(-0.1, 4), r"rho must be .* got -0.1; "),
        (lambda: pairings.rho_bar(0.5, 0), "num_workers must be >= 1, got 0; "),
    ],
)
def test_mistakes_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
