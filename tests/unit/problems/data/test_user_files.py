"""The user's own arrays and tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.config.errors import DataError
from simulator.problems.data.user_csv import Csv
from simulator.problems.data.user_npz import Npz

X = np.arange(60.0).reshape(20, 3)
Y = np.arange(20) % 3


def save(path: Path, **arrays: Any) -> Npz:
    np.savez(path / "mine.npz", **arrays)
    return Npz(path=str(path / "mine.npz"), scale="raw")


def table(path: Path, text: str, label: str = "kind") -> Csv:
    (path / "mine.csv").write_text(text)
    return Csv(path=str(path / "mine.csv"), label=label, scale="raw", test_fraction=0.5)


def test_npz_is_divided(tmp_path: Path) -> None:
    data = save(tmp_path, x=X, y=Y).make()
    assert (data.name, data.num_classes) == ("mine", 3)
    assert data.columns == ("x0", "x1", "x2")
    assert (data.x_train.shape, data.x_test.shape) == ((16, 3), (4, 3))
    row = data.x_train[:, 0].astype(int) // 3
    np.testing.assert_array_equal(data.y_train, row % 3)


def test_npz_with_test_rows(tmp_path: Path) -> None:
    data = save(tmp_path, x=X, y=Y.astype(float), x_test=X[:2], y_test=[0, 3]).make()
    assert data.num_classes == 4
    assert data.x_train.shape == (20, 3)
    np.testing.assert_array_equal(data.x_test, X[:2])
    np.testing.assert_array_equal(data.y_test, [0, 3])


def test_relative_to_the_data_folder(root: Path) -> None:
    save(root, x=X, y=Y)
    assert Npz(path="mine.npz").make().name == "mine"


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"x": X}, "must hold the array y"),
        ({"x": X, "y": Y, "x_test": X}, "must hold the array y_test"),
        ({"x": X, "y": Y[:5]}, r"got \(20, 3\) and \(5,\)"),
        ({"x": X.reshape(20, 3, 1), "y": Y}, r"got \(20, 3, 1\)"),
        ({"x": X[:0], "y": Y[:0]}, "neither empty"),
        ({"x": X, "y": Y - 1}, "whole numbers from 0"),
        ({"x": X, "y": Y + 0.5}, "whole numbers from 0"),
        ({"x": X, "y": Y.astype(str)}, "whole numbers from 0"),
        ({"x": X, "y": 0 * Y}, "two classes or more"),
        ({"x": X, "y": 70 * (Y > 0)}, "no row of class 1 to 69, but some of class 70"),
        ({"x": X, "y": 2 * (Y > 0)}, "no row of class 1, but some of class 2"),
        ({"x": X, "y": Y + 1}, "no row of class 0, but some of class 1"),
        ({"x": X, "y": 10**9 * Y}, "number the 3 classes by numpy.unique"),
        (
            {"x": X, "y": Y, "x_test": X, "y_test": Y + 4},
            r"some of class 4; .* by numpy.unique\(numpy.concatenate\(\[y, y_test\]\)",
        ),
        ({"x": X.astype(str), "y": Y}, "real numbers"),
        ({"x": np.where(X == 7, np.nan, X), "y": Y}, "got nan at row 2, column 1"),
        ({"x": X * 1e38, "y": Y}, "must be finite"),
        ({"x": X.astype(object), "y": Y}, "npz file of plain arrays"),
        ({"x": X, "y": Y, "x_test": X[:, :2], "y_test": Y}, "3 columns of x, got 2"),
    ],
)
def test_npz_that_does_not_fit(
    tmp_path: Path, arrays: dict[str, Any], says: str
) -> None:
    with pytest.raises(DataError, match=says) as error:
        save(tmp_path, **arrays).make()
    assert "\n" not in str(error.value)


def test_npz_that_is_absent_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"must be a file, got 'gone\.npz'"):
        Npz(path="gone.npz").make()
    config = save(tmp_path, x=X, y=Y)
    path = Path(config.path)
    whole = path.read_bytes()
    for content in (whole[:100], b"", b"x,y\n1,2\n"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="must be an npz file of plain arrays"):
            config.make()
    with path.open("wb") as file:
        np.save(file, X)
    with pytest.raises(DataError, match="got: a single array"):
        config.make()


def test_csv(tmp_path: Path) -> None:
    rows = [f"{i},{'ab'[i % 2]},{i / 4}" for i in range(10)]
    data = table(tmp_path, "\n".join(["width, kind,high", *rows, "", ""])).make()
    assert (data.name, data.num_classes) == ("mine", 2)
    assert data.columns == ("width", "high")
    assert (len(data.y_train), len(data.y_test)) == (5, 5)
    np.testing.assert_array_equal(data.y_train, data.x_train[:, 0].astype(int) % 2)
    np.testing.assert_array_equal(data.x_train[:, 1], data.x_train[:, 0] / 4)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(["10", "9", "9.0", "2"], [2, 1, 1, 0]), (["b", "10", "9", "b"], [2, 0, 1, 2])],
)
def test_csv_labels_in_sorted_order(
    tmp_path: Path, labels: list[str], expected: list[int]
) -> None:
    rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    data = table(tmp_path, "row,kind\n" + rows).make()
    x = np.concatenate([data.x_train, data.x_test])[:, 0].astype(int)
    y = np.concatenate([data.y_train, data.y_test])
    np.testing.assert_array_equal(y[np.argsort(x)], expected)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,kinds\n1,0\n2,1\n", "got 'kind'; did you mean 'kinds'"),
        ("a,kind\n1,0\nred,1\n", "column 'a' .* got 'red' in line 3"),
        ("a,kind\n1,0\n,1\n", "column 'a' .* got '' in line 3"),
        ("a,kind\n1,0\ninf,1\n", "column 'a' .* got 'inf' in line 3"),
        ("a,kind\n1,0\n1e39,1\n", "column 'a' .* got '1e39' in line 3"),
        ("a,kind\n1,0\n2\n", "2 cells in every row, got 1 in line 3"),
        ("a,a,kind\n1,1,0\n2,2,1\n", "'a' twice"),
        ("kind\n1\n2\n", "a column besides the label"),
        ("a,kind\n1,0\n2,\n", "a label in every row, got none in line 3"),
        ("a,kind\n1,0\n2,0\n", "two classes or more, got only '0'"),
        ("a,kind\n", "at least one row of data"),
        ("", "at least one row of data"),
    ],
)
def test_csv_that_does_not_fit(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(DataError, match=says) as error:
        table(tmp_path, text).make()
    assert "\n" not in str(error.value)


def test_csv_that_is_no_text(tmp_path: Path) -> None:
    config = table(tmp_path, "")
    Path(config.path).write_bytes(b"a,kind\n\xff\xfe,1\n")
    with pytest.raises(DataError, match="comma-separated text in UTF-8"):
        config.make()
