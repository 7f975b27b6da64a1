"""Constants of a linear problem, and the step that FedBCD's Theorem 2 allows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from stalesim.simulator.problem.convex import (
    largest_step,
    minimum,
    smoothness,
    smoothness_of_parties,
)
from tests.reference.fedbcd_theory_twin import theorem2_bound

CURVATURES = {"sigmoid": 0.25, "taylor": 0.25, "softmax": 0.5}


def features(num_rows: int, num_columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num_rows, num_columns)) + 0.5


@pytest.mark.parametrize("loss", CURVATURES)
@pytest.mark.parametrize("shape", [(40, 7), (5, 12), (6, 6)])
def test_smoothness_is_the_squared_norm(loss: str, shape: tuple[int, int]) -> None:
    x = features(*shape)
    ones = np.concatenate([x, np.ones((shape[0], 1))], axis=1)
    expected = CURVATURES[loss] * np.linalg.norm(ones, 2) ** 2 / shape[0] + 0.3
    assert smoothness(x, loss, 0.3) == pytest.approx(expected, rel=1e-12)
    single = smoothness(x.astype(np.float32), loss, 0.3)
    assert single == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("bias", [True, False])
def test_the_minimum_is_that_of_the_model_in_use(*, bias: bool) -> None:
    x, a = features(60, 4), 0.05
    y = (x @ [1.0, -2.0, 0.0, 0.5] + features(60, 1, seed=1)[:, 0] > 0).astype(np.int32)
    model = LogisticRegression(C=1 / (60 * a), fit_intercept=bias, tol=1e-10).fit(x, y)
    logits = model.decision_function(x)
    expected = np.mean(np.logaddexp(0, logits) - y * logits)
    expected += a / 2 * np.sum(model.coef_**2)
    found = minimum(x, y, "sigmoid", 1, a, bias=bias)
    assert found == pytest.approx(expected, rel=1e-9)
    alone = 0.25 * np.linalg.norm(x, 2) ** 2 / 60 + a
    assert (smoothness(x, "sigmoid", a, bias=bias) > alone + 1e-9) == bias


@pytest.mark.parametrize("num_rows", [40, 5])
def test_smoothness_of_parties_is_of_their_own_columns(num_rows: int) -> None:
    x = features(num_rows, 9)
    columns = [np.array([8, 0]), np.arange(1, 8)]
    found = smoothness_of_parties(x, columns, "sigmoid", 0.1)
    expected = [
        0.25 * np.linalg.norm(x[:, held], 2) ** 2 / num_rows + 0.1 for held in columns
    ]
    assert found == pytest.approx(expected, rel=1e-12)
    # Blocks of a matrix are no larger than it, and their sum is no smaller.
    whole = smoothness(x, "sigmoid", 0.1)
    assert max(found) <= whole
    (everything,) = smoothness_of_parties(x, [np.arange(9)], "sigmoid", 0.0)
    assert everything <= sum(found) - 0.2 + 1e-12


def test_the_hessian_of_the_objective_is_no_larger() -> None:
    x = features(30, 4)
    ones = np.concatenate([x, np.ones((30, 1))], axis=1)
    largest = 0.0
    for w in np.random.default_rng(1).normal(size=(20, 5)):
        p = 1 / (1 + np.exp(-ones @ w))
        hessian = (ones * (p * (1 - p))[:, None]).T @ ones / 30
        largest = max(largest, float(np.linalg.eigvalsh(hessian)[-1]))
    bound = smoothness(x, "sigmoid", 0.0)
    assert 0.05 * bound < largest <= bound


def test_the_largest_step_meets_the_condition_of_the_proof() -> None:
    generator = np.random.default_rng(2)
    violated = 0
    for _ in range(200):
        steps, parties = int(generator.integers(1, 60)), int(generator.integers(1, 18))
        of_parties = tuple(generator.lognormal(0, 2, parties).tolist())
        whole = float(generator.uniform(max(of_parties), sum(of_parties)))
        eta = largest_step(steps, of_parties, whole)
        squares = np.square(of_parties)
        A = squares.sum() + 3 * squares  # of every party

        def left(eta: float, L: float = whole, A: np.ndarray = 2 * steps**2 * A):
            return float((1 - L * eta - eta**2 * A).min())

        assert left(eta) >= -1e-12
        bound = theorem2_bound(steps, of_parties, whole)
        assert eta == pytest.approx(bound.safe, rel=1e-14)
        assert eta <= bound.exact * (1 + 1e-12)
        violated += left(bound.printed) < 0
        # It is not far from the largest one: the exact root is at most twice it.
        assert bound.exact <= 2 * eta * (1 + 1e-12)
    assert violated == 200


def test_more_local_steps_allow_less() -> None:
    found = [largest_step(steps, (1.0, 2.0), 3.0) for steps in (1, 10, 100)]
    # A = 1 + 4 + 3 * 4 = 17
    root = np.sqrt(17)
    assert found == pytest.approx([1 / (2 * root), 1 / (20 * root), 1 / (200 * root)])
    assert largest_step(1, (0.1,), 3.0) == pytest.approx(1 / 6)
