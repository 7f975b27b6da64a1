"""The twins of FedBCD against hand-computed cases and block descent.

Kernels differentiate by JAX and are held to these twins, which differentiate by hand.
Two ways to the same float64 parameters, sums of a few dozen terms of order 1, agree to
1e-12.
"""

import numpy as np
import numpy.typing as npt
import pytest

from tests.reference import fedbcd_theory_twin as theory
from tests.reference import fedbcd_twin as twin
from tests.reference import ftl_twin
from tests.reference.fedbcd_twin import Local, Problem
from tests.reference.layers_twin import Linear

NUM_SAMPLES, Q, STEP = 12, 3, 0.2
WIDTHS = (3, 4, 2, 3)
ALL = np.arange(NUM_SAMPLES)
LEFT, RIGHT = ALL[:6], ALL[6:]


def problem(num_parties: int) -> Problem:
    generator = np.random.default_rng(1)
    widths = WIDTHS[:num_parties]
    x = [generator.normal(size=(NUM_SAMPLES, d)) for d in widths]
    y = generator.choice([-1.0, 1.0], size=NUM_SAMPLES)
    return Problem([Linear(d) for d in widths], x, y, l2=0.05)


def start(data: Problem) -> list[np.ndarray]:
    generator = np.random.default_rng(2)
    return [generator.normal(size=model.size) for model in data.models]


def batches(num_rounds: int = 3, size: int = 5) -> list[np.ndarray]:
    generator = np.random.default_rng(3)
    return [generator.integers(NUM_SAMPLES, size=size) for _ in range(num_rounds)]


def fedbcd(
    data: Problem, ids: list[np.ndarray], local: Local, *, sequential: bool = False
) -> list[twin.Params]:
    steps = [STEP] * len(ids)
    return twin.fedbcd(data, start(data), ids, steps, local, sequential=sequential)


def assert_close(got: npt.ArrayLike, expected: npt.ArrayLike) -> None:
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def block(data: Problem, params: list[np.ndarray], k: int, ids: np.ndarray):
    """Gradient of the objective in theta_k, linear and logistic, sample by sample."""
    gradient = data.l2 * params[k]
    for i in ids:
        score = sum(x[i] @ theta for x, theta in zip(data.x, params, strict=True))
        slope = -data.y[i] / (1.0 + np.exp(data.y[i] * score))
        gradient = gradient + slope * data.x[k][i] / len(ids)
    return gradient


def test_slopes_by_hand():
    y = np.array([1.0, -1.0])
    for loss in ("logistic", "taylor2"):
        assert_close(twin.slopes(loss, np.zeros((2, 1)), y), [[-0.5], [0.5]])
    assert_close(twin.slopes("taylor2", np.full((2, 1), 2.0), y), [[0.0], [1.0]])
    far = np.array([[1e3], [1e3]])
    assert_close(twin.slopes("logistic", far, y), [[0.0], [1.0]])


def test_fedsgd_is_central_sgd():
    data = problem(3)
    whole = Problem([Linear(9)], [np.hstack(data.x)], data.y, l2=data.l2)
    theta = np.concatenate(start(data))
    trace = fedbcd(data, batches(), Local())
    for params, ids in zip(trace, batches(), strict=True):
        theta = theta - STEP * block(whole, [theta], 0, ids)
        assert_close(np.concatenate(params), theta)


@pytest.mark.parametrize("num_parties", [2, 3, 4])
@pytest.mark.parametrize("sequential", [False, True])
def test_recompute_is_block_descent(num_parties, sequential):
    """Side by side with what others were, or in turn with what they are."""
    data = problem(num_parties)
    params = start(data)
    trace = fedbcd(data, batches(), Local(Q), sequential=sequential)
    for row, ids in zip(trace, batches(), strict=True):
        old = list(params)
        for k in range(num_parties):
            for _ in range(Q):
                seen = list(params if sequential else old)
                seen[k] = params[k]
                params[k] = params[k] - STEP * block(data, seen, k, ids)
        for theta, expected in zip(row, params, strict=True):
            assert_close(theta, expected)


def test_frozen_has_a_constant_data_gradient_without_labels():
    data = problem(2)
    ends = [fedbcd(data, batches(1), Local(n, "frozen"))[0] for n in (1, 2, 3)]
    for k, constant in ((0, True), (1, False)):  # eq. (57) holds for k < K only
        change = ends[1][k] - ends[0][k]
        factor = 1.0 - STEP * data.l2
        equal = np.allclose(ends[2][k] - ends[1][k], factor * change, atol=1e-12)
        assert equal == constant


def test_the_pull_is_to_the_parameters_of_the_exchange():
    data, (ids,), mu = problem(1), batches(1), 0.7
    (begun,) = (theta,) = start(data)
    for _ in range(Q):
        gradient = block(data, [theta], 0, ids) + mu * (theta - begun)
        theta = theta - STEP * gradient
    assert_close(fedbcd(data, [ids], Local(Q, mu=mu))[0][0], theta)


def test_in_turn_everyone_sees_the_parameters_of_the_last_turn():
    """Full batches, linear: H_{-k} is at the theta that the others uploaded."""
    data, order = problem(2), [0, 1, 0, 0, 1, 1, 0]
    now, turns = start(data), [(k, ALL) for k in order]
    uploaded, sequence = list(now), list(now)
    trace = twin.asynchronous(data, now, turns, [STEP] * len(order), Local(Q))
    for row, k in zip(trace, order, strict=True):
        uploaded[k] = now[k]
        for _ in range(Q):
            seen = list(uploaded)
            seen[k] = now[k]
            now[k] = now[k] - STEP * block(data, seen, k, ALL)
            sequence[k] = sequence[k] - STEP * block(data, sequence, k, ALL)
        assert_close(row[k], now[k])
    # This is not block descent in turn.
    assert np.abs(sequence[0] - now[0]).max() > 1e-6


def test_only_the_batch_is_stored():
    data, local = problem(2), Local()
    turns = [(0, LEFT), (0, LEFT), (1, ALL)]
    first, _, last = twin.asynchronous(data, start(data), turns, [STEP] * 3, local)
    mixed = [
        block(data, [theta, start(data)[1]], 1, ids) - data.l2 * start(data)[1]
        for theta, ids in ((first[0], LEFT), (start(data)[0], RIGHT))
    ]
    gradient = np.mean(mixed, axis=0) + data.l2 * start(data)[1]
    assert_close(last[1], start(data)[1] - STEP * gradient)


def test_transfer_by_hand():
    """Phi = ([1, 0] - [0, 1]) / 2; phi_0 = 1; alignment u_0 . u_0 / 2 = 1."""
    u_a, u_b = np.eye(2), np.array([[2.0, 0.0], [np.nan, np.nan]])
    y, ids = np.array([1.0, -1.0]), np.array([0])
    loss, (d_a, d_b) = ftl_twin.loss_and_gradients(u_a, u_b, y, ids, 10.0)
    assert loss == pytest.approx(10.0 * (np.log(2.0) - 0.5 + 0.125) - 1.0)
    # d phi = 10 (-1/2 + 1/4); d u_b = d phi Phi - u_a / 2; d Phi = d phi u_b.
    assert_close(d_b, [[-1.25 - 0.5, 1.25], [0.0, 0.0]])
    assert_close(d_a, [[-2.5 - 1.0, 0.0], [2.5, 0.0]])


def test_numbers_of_section_5():
    bound = theory.theorem2_bound(5, [1.0, 1.0], 1.0)
    assert round(bound.printed, 5) == 0.06325
    assert round(bound.exact, 5) == 0.06128
    assert bound.safe == pytest.approx(0.1 / 5**0.5, rel=1e-14)


def test_steps():
    assert_close(theory.inverse_sqrt_steps(2.0, 2, 2), [[2, 2], [2**0.5, 2**0.5]])
    assert_close(theory.inverse_sqrt_steps(1.0, 1, 1, num_parties=4), [[0.5]])
