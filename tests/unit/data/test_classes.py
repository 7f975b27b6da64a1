"""Some classes of a data set, or two groups of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.catalogue.data.bundled import BreastCancer, Digits
from stalesim.simulator.catalogue.data.mnist import Mnist
from stalesim.simulator.catalogue.data.own_arrays import Npz
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.problem.data.parts import Data
from stalesim.simulator.problem.data.split import finished

X = np.arange(20.0)[:, None]
Y = np.arange(20) % 5
ROWS = (X, Y)


def taken(choice: Any, rows: Any = ROWS, test: Any = ROWS, **options: Any) -> Any:
    config = Data(scale="raw", classes=choice, **options)
    return finished(config, "own", rows, test, num_classes=5, columns=("a",))


@pytest.mark.parametrize(
    ("choice", "name", "numbers"),
    [
        ("even_odd", "own (even_odd)", [0, 1, 0, 1, 0]),
        ("lower_upper", "own (lower_upper)", [0, 0, 0, 1, 1]),
        ((1, 3), "own (1, 3)", [None, 0, None, 1, None]),
        ((4, 0, 2), "own (4, 0, 2)", [1, None, 2, None, 0]),
    ],
)
def test_classes_are_renumbered(choice: Any, name: str, numbers: list) -> None:
    data = taken(choice)
    assert data.name == name
    assert data.num_classes == len({n for n in numbers if n is not None})
    rows = [i for i in range(20) if numbers[i % 5] is not None]
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        assert sorted(x[:, 0]) == rows
        assert y.tolist() == [numbers[int(value) % 5] for value in x[:, 0]]
        assert y.dtype == np.int32
    np.testing.assert_array_equal(data.x_test[:, 0], rows)


def test_none_changes_nothing() -> None:
    data, again = taken(None), taken((0, 1, 2, 3, 4))
    assert (data.name, data.num_classes) == ("own", 5)
    np.testing.assert_array_equal(data.x_train, again.x_train)


def test_limit_counts_the_rows_of_the_classes() -> None:
    part = taken((1, 3), limit=8)
    assert set(part.x_train[:, 0] % 5) == {1, 3}
    with pytest.raises(ScenarioError, match=r"the 8 training rows of own \(1, 3\), go"):
        taken((1, 3), limit=9)


def test_scale_is_that_of_the_rows_of_the_classes() -> None:
    config = Data(scale="standard", classes=(1, 3))
    data = finished(config, "own", ROWS, ROWS, num_classes=5, columns=("a",))
    np.testing.assert_allclose(data.x_train.mean(), 0, atol=1e-6)
    np.testing.assert_allclose(data.x_train.std(), 1, rtol=1e-6)


def test_a_test_row_is_one_whatever_classes_are_taken() -> None:
    whole = Digits().make()
    part = Digits(classes=(3, 8)).make()
    kept = np.isin(whole.y_test, (3, 8))
    np.testing.assert_array_equal(part.x_test, whole.x_test[kept])
    np.testing.assert_array_equal(part.y_test, whole.y_test[kept] == 8)


def test_every_loader(tmp_path: Path) -> None:
    data = Mnist(classes="even_odd").make()
    assert (data.name, data.num_classes) == ("mnist5k (even_odd)", 2)
    assert np.bincount(data.y_train).sum() == 4000
    np.savez(tmp_path / "mine.npz", x=X, y=Y)
    config = Npz(path=str(tmp_path / "mine.npz"), classes=(2, 1))
    assert config.make().name == "mine (2, 1)"
    swapped = BreastCancer(classes=(1, 0)).make()
    again = BreastCancer(classes="lower_upper").make()
    np.testing.assert_array_equal(swapped.y_test, 1 - again.y_test)


@pytest.mark.parametrize(
    ("choice", "rows", "test", "says"),
    [
        ((1, 5), ROWS, ROWS, "must be classes of own, from 0 to 4, got 5; choose"),
        ((1, 2), (X[:2], Y[:2]), ROWS, "training rows in every class, .* in class 2"),
        ("even_odd", (X[:1], Y[:1]), ROWS, "got none of own in group 1 of even_odd"),
        ((3, 4), ROWS, (X[:2], Y[:2]), r"must have test rows, got none of own in 3, 4"),
    ],
)
def test_impossible(choice: Any, rows: Any, test: Any, says: str) -> None:
    with pytest.raises(ScenarioError, match=f"^problem.data.classes .*{says}") as error:
        taken(choice, rows, test)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("choice", ["odd", (3,), (3, 3), (3, -1), 3, (1.5, 2)])
def test_no_choice(choice: Any) -> None:
    with pytest.raises(ValidationError):
        Digits(classes=choice)
