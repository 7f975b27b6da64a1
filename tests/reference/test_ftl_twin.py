"""The transfer-learning twin; finite differences as in `test_fedbcd_twin`."""

import numpy as np
import pytest

from tests.reference import ftl_twin as twin
from tests.reference.fedbcd_twin import Layer
from tests.reference.ftl_twin import Problem
from tests.reference.test_fedbcd_twin import assert_close, finite_difference

NUM_A, NUM_B, HIDDEN = 9, 7, 3
OVERLAP = np.array([0, 2, 3, 6])
LABELLED = pytest.mark.parametrize(
    "labelled", [None, np.array([0, 1, 2, 5]), np.array([4, 8])]
)


def problem(activation: str = "tanh", **changes) -> Problem:
    generator = np.random.default_rng(1)
    return Problem(
        layer_a=Layer(4, HIDDEN, activation),
        layer_b=Layer(2, HIDDEN, activation),
        x_a=generator.normal(size=(NUM_A, 4)),
        x_b=generator.normal(size=(NUM_B, 2)),
        y=generator.choice([-1.0, 1.0], size=NUM_A),
        overlap=OVERLAP,
        alpha=3.0,
        l2=0.05,
    )._replace(**changes)


def start() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(2)
    return generator.normal(size=15), generator.normal(size=9)


def representations() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    u_a = generator.normal(size=(NUM_A, HIDDEN))
    u_b = generator.normal(size=(NUM_B, HIDDEN))
    return u_a, u_b, generator.choice([-1.0, 1.0], size=NUM_A)


def objective(data: Problem, theta_a: np.ndarray, theta_b: np.ndarray, ids) -> float:
    u_a = data.layer_a.forward(theta_a, data.x_a)
    u_b = data.layer_b.forward(theta_b, data.x_b)
    loss, _, _ = twin.ftl_loss_and_gradients(
        u_a, u_b, data.y, ids, data.alpha, data.labelled
    )
    return loss + data.l2 / 2.0 * float(theta_a @ theta_a + theta_b @ theta_b)


class TestObjective:
    def test_value_by_hand(self):
        """Phi = ([1, 0] - [0, 1]) / 2; phi_0 = 1; alignment u_0 . u_0 / 2 = 1."""
        u_a, u_b = np.eye(2), np.array([[2.0, 0.0], [9.0, 9.0]])
        y, ids = np.array([1.0, -1.0]), np.array([0])
        loss, _, d_b = twin.ftl_loss_and_gradients(u_a, u_b, y, ids, 10.0)
        assert loss == pytest.approx(10.0 * (np.log(2.0) - 0.5 + 0.125) - 1.0)
        # d phi = 10 (-1/2 + 1/4); d u_b = d phi Phi - u_a / 2
        assert_close(d_b, [[-1.25 - 0.5, 1.25], [0.0, 0.0]])
        assert_close(twin.scores(u_a, u_b, y), [1 / (1 + np.exp(-1.0)), 0.5])

    @LABELLED
    def test_gradients(self, labelled):
        u_a, u_b, y = representations()
        _, d_a, d_b = twin.ftl_loss_and_gradients(u_a, u_b, y, OVERLAP, 3.0, labelled)

        def loss(u_a: np.ndarray, u_b: np.ndarray) -> float:
            return twin.ftl_loss_and_gradients(u_a, u_b, y, OVERLAP, 3.0, labelled)[0]

        slope_a = finite_difference(lambda v: loss(v, u_b), u_a)
        slope_b = finite_difference(lambda v: loss(u_a, v), u_b)
        np.testing.assert_allclose(d_a, slope_a, atol=1e-7)
        np.testing.assert_allclose(d_b, slope_b, atol=1e-7)
        outside = np.setdiff1d(np.arange(NUM_B), OVERLAP)
        assert not d_b[outside].any()

    def test_rows_of_b_outside_the_overlap_are_not_read(self):
        u_a, u_b, y = representations()
        u_b[[1, 4, 5]] = np.nan
        loss, d_a, _ = twin.ftl_loss_and_gradients(u_a, u_b, y, OVERLAP, 3.0)
        assert np.isfinite(loss)
        assert np.isfinite(d_a).all()


class TestRun:
    @LABELLED
    @pytest.mark.parametrize("activation", ["relu", "tanh"])
    @pytest.mark.parametrize("Q", [1, 4])
    def test_steps_take_partial_gradients_of_the_objective(
        self, labelled, activation, Q
    ):
        """With numeric gradients of the whole objective, the other block as sent."""
        data = problem(activation, labelled=labelled)
        a, b = start()
        rounds = [None, OVERLAP[:2]]
        steps = np.array([[0.05, 0.04, 0.03, 0.02], [0.01] * 4])[:, :Q]
        trace = twin.ftl_fedbcd_p(data, a, b, rounds, Q, steps)
        for t, batch in enumerate(rounds):
            ids = OVERLAP if batch is None else batch
            sent_a, sent_b = a, b
            penalty = data.l2 / 2.0 * float(a @ a + b @ b)
            loss = objective(data, a, b, ids) - penalty
            assert trace.losses[t] == pytest.approx(loss, abs=1e-6)
            for j in range(Q):

                def at_a(v: np.ndarray, ids=ids, other=sent_b) -> float:
                    return objective(data, v, other, ids)

                def at_b(v: np.ndarray, ids=ids, other=sent_a) -> float:
                    return objective(data, other, v, ids)

                a = a - steps[t, j] * finite_difference(at_a, a)
                b = b - steps[t, j] * finite_difference(at_b, b)
            np.testing.assert_allclose(trace.params[t][0], a, atol=1e-6)
            np.testing.assert_allclose(trace.params[t][1], b, atol=1e-6)

    def test_proximal_term(self):
        data = problem()
        a, b = start()
        step = np.array([0.02])
        runs = {
            (mu, anchor, Q): twin.ftl_fedbcd_p(
                data, a, b, [None], Q, step, mu, anchor
            ).params[0]
            for mu in (0.0, 2.0)
            for anchor in ("sync", "first_step")
            for Q in (1, 2, 3)
        }
        for party, theta in enumerate((a, b)):
            one, two = runs[0.0, "sync", 1][party], runs[0.0, "sync", 2][party]
            pull = 0.02 * 2.0 * (one - theta)  # of the second step
            assert_close(runs[2.0, "sync", 2][party], two - pull)
            np.testing.assert_array_equal(runs[2.0, "first_step", 2][party], two)
            far = runs[0.0, "sync", 3][party] - runs[2.0, "first_step", 3][party]
            assert np.abs(far).max() > 1e-6
