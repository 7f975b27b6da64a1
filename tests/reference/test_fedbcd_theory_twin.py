"""Counts, Theorem 2 and Theorem 1 of FedBCD; printed numbers to half a last digit."""

import numpy as np
import pytest

from tests.reference import fedbcd_theory_twin as theory


class TestTheorem2:
    def test_numbers_of_section_5(self):
        bound = theory.theorem2_bound(5, [1.0, 1.0], 1.0)
        assert round(bound.printed, 5) == 0.06325
        assert round(bound.exact, 5) == 0.06128
        assert bound.safe == pytest.approx(0.1 / 5**0.5, rel=1e-14)

    @pytest.mark.parametrize("Q", [1, 5, 50])
    @pytest.mark.parametrize("L_k", [(1.0, 1.0), (0.1, 2.0, 0.3), (1e-3, 1e-3)])
    @pytest.mark.parametrize("L", [0.5, 4.0])
    def test_condition_of_the_proof(self, Q, L_k, L):
        bound = theory.theorem2_bound(Q, L_k, L)
        squares = [value**2 for value in L_k]

        def residual(eta: float) -> float:
            worst = max(sum(squares) + 3.0 * square for square in squares)
            return 1.0 - L * eta - 2.0 * eta**2 * Q**2 * worst

        assert residual(bound.printed) < 0.0  # always too large
        assert residual(bound.safe) >= -1e-12
        # b^2 and 4ac of the root formula may differ by 1e6: 1e-16 * 1e6.
        assert residual(bound.exact) == pytest.approx(0.0, abs=1e-9)
        assert bound.safe <= bound.exact <= bound.printed


class TestTheorem1:
    """x and x @ U give the same messages, if U theta^0 = theta^0."""

    def rotation(self, theta: np.ndarray) -> np.ndarray:
        d = len(theta)
        V = np.array([[-1.0]])
        if d > 2:
            normal = np.random.default_rng(5).normal(size=(d - 1, d - 1))
            V = np.linalg.qr(normal)[0]
        return theory.secret_rotation(theta, V)

    @pytest.mark.parametrize("d", [2, 3, 10])
    def test_rotation(self, d):
        theta = np.random.default_rng(6).normal(size=d)
        for fixed in (theta, 3.0 * np.eye(d)[0], np.zeros(d)):
            U = self.rotation(fixed)
            np.testing.assert_allclose(U @ U.T, np.eye(d), atol=1e-14)
            np.testing.assert_allclose(U @ fixed, fixed, atol=1e-13)
            assert np.abs(U - np.eye(d)).max() > 0.1
