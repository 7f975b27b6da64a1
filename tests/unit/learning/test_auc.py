"""The area under the ROC curve, against scikit-learn and by counting pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from stalesim.simulator.problem.metrics.functions import COUNTABLE, auc

PRECISIONS = {"float32": 1e-6, "float64": 1e-14}
SIZES = [100, COUNTABLE + 1]
measured = jax.jit(auc)


def drawn(size: int, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns scores, few of them different, and labels that they tell a little of."""
    generator = np.random.default_rng(0)
    labels = (generator.random(size) < 0.3).astype(np.int32)
    return generator.integers(0, levels, size) / 8 + 0.25 * labels, labels


def found(scores: np.ndarray, labels: np.ndarray, dtype: str = "float32") -> float:
    with jax.enable_x64(dtype == "float64"):
        result = measured(jnp.asarray(scores, dtype), jnp.asarray(labels, "int32"))
        assert result.dtype == dtype
        return float(result)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("levels", [2, 17, 10**9])
def test_it_is_that_of_scikit_learn(levels: int, dtype: str) -> None:
    scores, labels = drawn(100, levels)
    scores, tolerance = scores.astype(dtype), PRECISIONS[dtype]
    expected = roc_auc_score(labels, scores)
    assert found(scores, labels, dtype) == pytest.approx(expected, abs=tolerance)


def test_beyond_what_can_be_counted() -> None:
    scores, labels = drawn(COUNTABLE + 1, 50)
    expected = roc_auc_score(labels, scores)
    assert found(scores, labels) == pytest.approx(expected, abs=1e-5)


def test_pairs_are_counted_exactly_up_to_the_limit() -> None:
    half = COUNTABLE // 2
    labels = np.arange(COUNTABLE) >= half
    # Twice the pairs: the largest number that is counted; the next is too large.
    assert 2 * half * (COUNTABLE - half) < 2**32
    assert 2 * (half + 1) * (COUNTABLE - half) > 2**32
    scores = np.arange(COUNTABLE)
    assert found(scores, labels, "float64") == 1
    assert found(-scores, labels, "float64") == 0
    # One pair of two billion is the other way round.
    scores[[half - 1, half]] = scores[[half, half - 1]]
    exact = 1 - 1 / (half * (COUNTABLE - half))
    assert found(scores, labels, "float64") == exact < 1


@pytest.mark.parametrize("size", SIZES)
def test_what_says_nothing_is_one_half(size: int) -> None:
    labels = np.arange(size) % 3 == 0
    assert found(np.full(size, 0.7), labels) == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("label", [0, 1])
def test_a_missing_class_has_no_area(size: int, label: int) -> None:
    assert np.isnan(found(np.arange(size), np.full(size, label)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("of", [0, 1])
def test_scores_that_are_no_numbers_have_no_area(size: int, of: int) -> None:
    scores = np.arange(size, dtype=float)
    scores[of] = np.nan
    assert np.isnan(found(scores, np.arange(size) % 2))


def test_infinite_scores_are_the_largest() -> None:
    scores, labels = drawn(100, 4)
    expected = roc_auc_score(labels, scores)
    scores[scores == scores.max()] = np.inf
    scores[scores == scores.min()] = -np.inf
    assert found(scores, labels) == pytest.approx(expected)
