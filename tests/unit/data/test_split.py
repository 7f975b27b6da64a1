"""Division, order, limit and scale."""

import numpy as np
import pytest

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.data.parts import Data
from stalesim.simulator.problem.data.split import divide, divided, finished

X = np.arange(40, dtype=float).reshape(20, 2) ** 2
Y = np.arange(20) % 2
NAMES = {"num_classes": 2, "columns": ("a", "b")}


def test_halves_are_disjoint_and_complete() -> None:
    train, test = divide(Data(test_fraction=0.3), np.arange(20))
    assert (len(train), len(test)) == (14, 6)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(20))


@pytest.mark.parametrize(
    ("rows", "fraction", "expected"), [(30, 0.1, 3), (1797, 0.2, 360), (5, 0.01, 1)]
)
def test_test_rows_are_rounded_up(rows: int, fraction: float, expected: int) -> None:
    _, test = divide(Data(test_fraction=fraction), np.arange(rows))
    assert len(test) == expected


def test_split_seed_keys_the_division() -> None:
    halves = [divide(Data(split_seed=s), np.arange(50))[1].tolist() for s in (3, 3, 4)]
    assert halves[0] == halves[1] != halves[2]


def test_groups_stay_whole() -> None:
    groups = np.arange(30) // 3
    train, test = divide(Data(), groups)
    assert not set(groups[train]) & set(groups[test])
    assert len(test) == 6


def test_nothing_left_for_training() -> None:
    with pytest.raises(ScenarioError, match=r"test_fraction must leave .* got 0\.9"):
        divide(Data(test_fraction=0.9), np.arange(2))


def test_training_rows_are_shuffled_and_limited_and_test_rows_are_not() -> None:
    rows = (X, np.arange(20))
    whole = finished(Data(scale="raw"), "own", rows, rows, **NAMES)
    part = finished(Data(scale="raw", limit=7), "own", rows, rows, **NAMES)
    assert sorted(whole.y_train) == list(range(20))
    assert list(whole.y_train) != list(range(20))
    np.testing.assert_array_equal(part.y_train, whole.y_train[:7])
    np.testing.assert_array_equal(part.x_train, X[part.y_train])
    np.testing.assert_array_equal(part.y_test, np.arange(20))


def test_limit_above_the_rows() -> None:
    with pytest.raises(ScenarioError, match="limit must be at most the 16 training"):
        divided(Data(limit=17), "own", (X, Y), **NAMES)


def test_unit_of_a_table_is_the_range_of_the_training_rows() -> None:
    data = divided(Data(scale="unit"), "own", (X, Y), **NAMES)
    np.testing.assert_allclose(data.x_train.min(axis=0), 0)
    np.testing.assert_allclose(data.x_train.max(axis=0), 1)
    raw = divided(Data(scale="raw"), "own", (X, Y), **NAMES)
    low, high = raw.x_train.min(axis=0), raw.x_train.max(axis=0)
    np.testing.assert_allclose(
        data.x_test, (raw.x_test - low) / (high - low), rtol=1e-6
    )


def test_unit_of_an_image_is_the_largest_possible_value() -> None:
    pixels = np.full((20, 2), 51, np.uint8)
    data = divided(Data(scale="unit"), "own", (pixels, Y), largest=255.0, **NAMES)
    np.testing.assert_allclose(data.x_train, 0.2)


def test_standard_uses_the_training_rows_only() -> None:
    data = divided(Data(scale="standard", limit=9), "own", (X, Y), **NAMES)
    assert data.x_train.shape == (9, 2)
    np.testing.assert_allclose(data.x_train.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(data.x_train.std(axis=0), 1, rtol=1e-6)
    assert abs(data.x_test.mean()) > 1e-3


@pytest.mark.parametrize("scale", ["unit", "standard"])
def test_constant_column_becomes_zero(scale: str) -> None:
    x = np.stack([np.full(20, 0.1), np.arange(20.0)], axis=1)
    data = divided(Data(scale=scale), "own", (x, Y), **NAMES)
    np.testing.assert_allclose(data.x_train[:, 0], 0, atol=1e-6)


def test_types() -> None:
    data = divided(Data(), "own", (X, Y), **NAMES)
    assert data.x_train.dtype == data.x_test.dtype == np.float32
    assert data.y_train.dtype == data.y_test.dtype == np.int32
