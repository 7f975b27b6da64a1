"""Counts, Theorem 2 and Theorem 1 of FedBCD; printed numbers to half a last digit."""

import numpy as np
import pytest

from tests.reference import fedbcd_theory_twin as theory
from tests.reference import fedbcd_twin as twin
from tests.reference.fedbcd_s_twin import fedbcd_s
from tests.reference.fedbcd_twin import Linear, Problem, Trace

NUM_SAMPLES = 20


def linear_problem(widths: tuple[int, ...]) -> Problem:
    generator = np.random.default_rng(1)
    x = [2.0 * generator.normal(size=(NUM_SAMPLES, d)) for d in widths]
    y = generator.choice([-1.0, 1.0], size=NUM_SAMPLES)
    return Problem([Linear(d) for d in widths], x, y, l2=0.01)


def run(algorithm: str, data: Problem, params: list[np.ndarray], local: str) -> Trace:
    generator = np.random.default_rng(3)
    rounds = [generator.integers(NUM_SAMPLES, size=6) for _ in range(50)]
    steps = theory.inverse_sqrt_steps(0.05, 50, 5, "local")
    if algorithm == "fedpbcd_p":
        return twin.fedpbcd_p(data, params, rounds, 5, steps, local_gradient=local)
    if algorithm == "fedbcd_p":
        return twin.fedbcd_p(data, params, rounds, 5, steps, local)
    return fedbcd_s(data, params, rounds, 5, steps, local, algorithm)


class TestMessages:
    @pytest.mark.parametrize(
        ("num_parties", "star", "pairwise"), [(2, 2, 2), (5, 8, 20), (17, 32, 272)]
    )
    def test_table_of_section_3(self, num_parties, star, pairwise):
        assert theory.messages_star(num_parties) == star
        assert theory.messages_pairwise(num_parties) == pairwise

    @pytest.mark.parametrize("num_parties", [1, 2, 5, 17])
    def test_runs_send_as_many(self, num_parties):
        data = linear_problem((2,) * num_parties)
        params = [np.zeros(2)] * num_parties
        star = theory.messages_star(num_parties)
        parallel = run("fedbcd_p", data, params, "recompute")
        assert parallel.messages == [star] * 50
        assert parallel.start == []
        for exchange in ("per_batch", "as_printed"):
            before, each = theory.messages_sequential(num_parties, exchange)
            trace = run(exchange, data, params, "frozen")
            assert (len(trace.start), trace.messages) == (before, [each] * 50)
            assert each == (2 * star if exchange == "per_batch" else star)

    def test_scalars_are_one_per_sample(self):
        data = linear_problem((2, 2, 2))
        trace = run("as_printed", data, [np.zeros(2)] * 3, "recompute")
        assert {message.values.size for sent in trace.log for message in sent} == {6}
        assert {message.values.size for message in trace.start} == {NUM_SAMPLES}


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
