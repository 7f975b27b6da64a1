"""The synchronous twins against hand-computed cases and against each other.

Finite differences are central with step 1e-6 on losses of order 1 to 10: rounding gives
about 1e-16 * 10 / 1e-6 = 1e-9, truncation far less, hence atol 1e-7. Two ways to the
same float64 parameters, sums of a few dozen terms of order 1, agree to 1e-12.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from tests.reference import fedbcd_theory_twin as theory
from tests.reference import fedbcd_twin as twin
from tests.reference.fedbcd_twin import Layer, Linear, Mlp, Problem

NUM_SAMPLES = 12
WIDTHS = (3, 4, 2, 3)
EVERY_KIND = pytest.mark.parametrize("kind", ["linear", "relu", "tanh"])
GENTLE = np.full(3, 0.2)


def problem(num_parties: int, kind: str = "linear", **changes) -> Problem:
    generator = np.random.default_rng(1)
    widths = WIDTHS[:num_parties]
    return Problem(
        models=[Linear(d) if kind == "linear" else Mlp(d, 5, kind) for d in widths],
        x=[generator.normal(size=(NUM_SAMPLES, d)) for d in widths],
        y=generator.choice([-1.0, 1.0], size=NUM_SAMPLES),
        l2=0.05,
    )._replace(**changes)


def start(data: Problem) -> list[np.ndarray]:
    generator = np.random.default_rng(2)
    return [generator.normal(size=model.size) for model in data.models]  # type: ignore[attr-defined]


def batches(num_rounds: int = 3, size: int = 5) -> list[np.ndarray]:
    generator = np.random.default_rng(3)
    return [generator.integers(NUM_SAMPLES, size=size) for _ in range(num_rounds)]


def assert_close(got: npt.ArrayLike, expected: npt.ArrayLike) -> None:
    got, expected = np.asarray(got), np.asarray(expected)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def same(got: twin.Trace, expected: twin.Trace) -> None:
    for row, other in zip(got.params, expected.params, strict=True):
        for theta, phi in zip(row, other, strict=True):
            np.testing.assert_array_equal(theta, phi)


def finite_difference(f: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    gradient = np.zeros_like(at)
    for entry in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[entry] = 1e-6
        gradient[entry] = (f(at + step) - f(at - step)) / 2e-6
    return gradient


def block(data: Problem, params: list[np.ndarray], k: int, ids: np.ndarray):
    """Gradient of the objective in theta_k, linear and logistic, sample by sample."""
    gradient = data.l2 * params[k]
    for i in ids:
        score = sum(x[i] @ theta for x, theta in zip(data.x, params, strict=True))
        slope = -data.y[i] / (1.0 + np.exp(data.y[i] * score))
        gradient = gradient + slope * data.x[k][i] / len(ids)
    return gradient


class TestGradients:
    @pytest.mark.parametrize(
        "model",
        [
            Linear(3),
            Linear(3, 2),
            Layer(3, 4, "relu"),
            Layer(3, 4, "tanh"),
            Mlp(3, 4, "relu"),
            Mlp(3, 4, "tanh", 2),
        ],
    )
    def test_vjp(self, model):
        generator = np.random.default_rng(4)
        theta, x = generator.normal(size=model.size), generator.normal(size=(6, 3))
        d_output = generator.normal(size=model.forward(theta, x).shape)
        slope = finite_difference(
            lambda v: float((model.forward(v, x) * d_output).sum()), theta
        )
        np.testing.assert_allclose(model.vjp(theta, x, d_output), slope, atol=1e-7)

    @pytest.mark.parametrize("loss", ["logistic", "taylor2"])
    def test_slopes(self, loss):
        scores, y = np.linspace(-3, 3, 7)[:, None], np.array([1, -1, 1, -1, 1, -1, 1.0])
        slope = finite_difference(
            lambda v: float(twin.sample_losses(loss, v, y).sum()), scores
        )
        np.testing.assert_allclose(twin.slopes(loss, scores, y), slope, atol=1e-7)

    @EVERY_KIND
    @pytest.mark.parametrize("loss", ["logistic", "taylor2"])
    def test_partial_gradient_is_that_of_the_objective(self, kind, loss):
        data = problem(3, kind, loss=loss)
        params, ids = start(data), np.array([0, 3, 3, 7])
        scores = twin.add_up(twin.outputs(data, params, ids), len(ids))
        g = twin.slopes(loss, scores, data.y[ids])
        for k in range(3):

            def moved(v: np.ndarray, k: int = k) -> float:
                changed = [*params[:k], v, *params[k + 1 :]]
                return twin.objective(data, changed, ids)

            slope = finite_difference(moved, params[k])
            got = twin.partial_gradient(data, k, params[k], ids, g)
            np.testing.assert_allclose(got, slope, atol=1e-7)

    def test_values_by_hand(self):
        zero, y = np.zeros((2, 1)), np.array([1.0, -1.0])
        for loss in ("logistic", "taylor2"):
            assert_close(twin.sample_losses(loss, zero, y), [np.log(2.0)] * 2)
            assert_close(twin.slopes(loss, zero, y), [[-0.5], [0.5]])
        two = np.full((1, 1), 2.0)
        assert_close(twin.sample_losses("taylor2", two, y[:1]), [np.log(2.0) - 0.5])

    def test_far_scores_do_not_overflow(self):
        scores, y = np.array([[1e3], [-1e3]]), np.ones(2)
        assert_close(twin.slopes("logistic", scores, y), [[0.0], [-1.0]])
        assert_close(twin.sample_losses("logistic", scores, y), [0.0, 1e3])


class TestWhatTheMessagesTell:
    """The slopes of Exchange are enough to recompute (module's docstring)."""

    def test_taylor_slopes_need_only_the_own_change(self):
        y = np.array([1.0, -1.0])
        sent, now, rest = np.array([[[0.3], [2.0]], [[-1.0], [0.7]], [[4.0], [-2.0]]])
        told = twin.slopes("taylor2", rest + sent, y)
        assert_close(told + (now - sent) / 4.0, twin.slopes("taylor2", rest + now, y))


class TestSynchronous:
    def test_fedsgd_is_central_sgd(self):
        data = problem(3)
        params, rounds = start(data), batches()
        trace = twin.fedsgd(data, params, rounds, GENTLE)
        whole = Problem([Linear(9)], [np.hstack(data.x)], data.y, l2=data.l2)
        theta = np.concatenate(params)
        for t, ids in enumerate(rounds):
            theta = theta - 0.2 * block(whole, [theta], 0, ids)
            assert_close(np.concatenate(trace.params[t]), theta)

    def test_recompute_is_block_descent_side_by_side(self):
        data, Q = problem(3), 4
        params, trace = (
            start(data),
            twin.fedbcd_p(data, start(data), batches(), Q, GENTLE),
        )
        for t, ids in enumerate(batches()):
            old = list(params)
            for k in range(3):
                for _ in range(Q):
                    mixed = [*old[:k], params[k], *old[k + 1 :]]
                    params[k] = params[k] - 0.2 * block(data, mixed, k, ids)
            for k in range(3):
                assert_close(trace.params[t][k], params[k])

    def test_frozen_has_a_constant_data_gradient_without_labels(self):
        data, ids = problem(2), batches(1)
        ends = [
            twin.fedbcd_p(data, start(data), ids, Q, GENTLE[:1], "frozen").params[0]
            for Q in (1, 2, 3)
        ]
        for k, constant in ((0, True), (1, False)):  # eq. (57) holds for k < K only
            change = ends[1][k] - ends[0][k]
            factor = 1.0 - 0.2 * data.l2
            equal = np.allclose(ends[2][k] - ends[1][k], factor * change, atol=1e-12)
            assert equal == constant

    def test_proximal_anchors(self):
        data, ids = problem(1), batches(1)
        theta0, mu = start(data)[0], 0.7
        theta1 = theta0 - 0.2 * block(data, [theta0], 0, ids[0])
        for anchor, fixed in (("sync", theta0), ("first_step", theta1)):
            theta = theta1
            for _ in range(2):
                gradient = block(data, [theta], 0, ids[0]) + mu * (theta - fixed)
                theta = theta - 0.2 * gradient
            trace = twin.fedpbcd_p(data, [theta0], ids, 3, GENTLE[:1], mu, anchor)
            assert_close(trace.params[0][0], theta)

    def test_steps(self):
        assert_close(theory.inverse_sqrt_steps(2.0, 2, 2), [[2, 2], [2**0.5, 2**0.5]])
        local = theory.inverse_sqrt_steps(1.0, 2, 2, "local")
        assert_close(local, [[1, 2**-0.5], [3**-0.5, 0.5]])
        assert_close(theory.inverse_sqrt_steps(1.0, 1, 1, num_parties=4), [[0.5]])
        data = problem(2)
        constant = twin.fedbcd_p(data, start(data), batches(), 2, GENTLE)
        table = twin.fedbcd_p(data, start(data), batches(), 2, np.full((3, 2), 0.2))
        same(constant, table)


class TestSequential:
    @pytest.mark.parametrize("num_parties", [2, 3, 4])
    def test_per_batch_is_block_descent_in_turn(self, num_parties):
        data, Q = problem(num_parties), 3
        params = start(data)
        trace = twin.fedbcd_s(data, params, batches(), Q, GENTLE)
        for t, ids in enumerate(batches()):
            for k in range(num_parties):
                for _ in range(Q):
                    params[k] = params[k] - 0.2 * block(data, params, k, ids)
                assert_close(trace.params[t][k], params[k])
