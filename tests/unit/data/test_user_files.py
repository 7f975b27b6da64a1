"""The user's own arrays and tables."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.data.mnist import Mnist
from stalesim.simulator.catalogue.data.own_arrays import Generated, Npz
from stalesim.simulator.catalogue.data.quadratic import Quadratic
from stalesim.simulator.catalogue.data.tables import Csv, Parquet
from stalesim.simulator.catalogue.partitions.classes import Dirichlet, Labels
from stalesim.simulator.parts.errors import DataError, ScenarioError
from stalesim.simulator.problem.data import outputs
from stalesim.simulator.problem.data.base import Field
from stalesim.simulator.problem.learning import dataset

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
    data = save(tmp_path, x=X, y=Y.astype(float), x_test=X[:2], y_test=[0, 2]).make()
    assert data.num_classes == 3
    assert data.x_train.shape == (20, 3)
    np.testing.assert_array_equal(data.x_test, X[:2])
    np.testing.assert_array_equal(data.y_test, [0, 2])


def test_a_class_of_test_rows_alone_is_refused(tmp_path: Path) -> None:
    data = save(tmp_path, x=X, y=Y, x_test=X[:2], y_test=[0, 3]).make()
    assert data.num_classes == 0
    assert "y_test" in data.no_classes
    assert "class 3, which no row of y has" in data.no_classes


def test_own_data_are_as_stored_unless_a_scale_is_named(tmp_path: Path) -> None:
    for kind in (Npz, Csv, Parquet, Generated):
        assert kind.model_fields["scale"].default == "raw"
    x = 5 * np.random.default_rng(0).normal(size=(20, 4, 2))
    given = save(tmp_path, x=x, y=Y, x_test=x[:3], y_test=Y[:3])
    data = Npz(path=given.path).make()
    np.testing.assert_array_equal(data.x_test, x[:3].reshape(3, 8).astype(np.float32))
    assert data.scaling == "raw: as stored"


@pytest.mark.parametrize("scale", ["unit", "standard"])
def test_constants_are_of_training_rows_and_one_for_an_array(
    tmp_path: Path, scale: Any
) -> None:
    draw = np.random.default_rng(1)
    x = {
        "table": draw.normal(size=(20, 3)) * [1, 10, 100],
        "image": draw.normal(size=(20, 4, 2)) + np.arange(8).reshape(4, 2),
        "grey": draw.integers(256, size=(20, 2, 2), dtype=np.uint8),
        "mask": draw.random((20, 2, 2)) < 0.5,
        "tokens": draw.integers(9, size=(20, 2)),
        "age": draw.normal(size=20),
    }
    arrays = {f"x/{name}": array for name, array in x.items()}
    test = {f"x_test/{name}": 3 * array[:2] for name, array in x.items()}
    test["x_test/mask"] = x["mask"][:2]
    given = save(tmp_path, **arrays, **test, y=Y, y_test=Y[:2])
    data = given.model_copy(update={"scale": scale}).make()
    ends = np.cumsum([field.width for field in data.fields])
    found = dict(zip(x, np.split(data.x_test, ends[:-1], axis=1), strict=True))
    for name, array in x.items():
        rows = test[f"x_test/{name}"].astype(float)
        axes = 0 if name in ("table", "age") else None  # of each column, or of all
        known = {"grey": (0, 255), "mask": (0, 1)}
        low, high = known.get(name, (array.min(axis=axes), array.max(axis=axes)))
        shift, divisor = low, np.subtract(high, low)
        if scale == "standard":
            shift, divisor = array.mean(axis=axes), array.std(axis=axes)
        if name == "tokens":
            shift, divisor = 0, 1
        expected = ((rows - shift) / divisor).reshape(2, -1)
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6)
    own = {"unit": "by its extremes", "standard": "by its mean and deviation"}[scale]
    assert f"table each column {own} in 20 training rows" in data.scaling
    assert f"image the array {own} in 20 training rows" in data.scaling
    assert "tokens whole numbers, as stored" in data.scaling
    assert ("grey 0 to 255 become 0 to 1" in data.scaling) == (scale == "unit")


@pytest.mark.parametrize("scale", ["raw", "unit"])
def test_double_precision_keeps_what_float32_has_not(
    tmp_path: Path, scale: Any
) -> None:
    x = np.random.default_rng(2).normal(size=(20, 3))
    given = save(tmp_path, x=x, y=x[:, 0], x_test=x, y_test=x[:, 0])
    config = given.model_copy(update={"scale": scale})
    short, data = dataset(config), dataset(config, "float64")
    low, high = x.min(axis=0), x.max(axis=0)
    expected = x if scale == "raw" else (x - low) / (high - low)
    np.testing.assert_array_equal(data.x_test, expected)
    np.testing.assert_array_equal(data.y_test, x[:, 0])
    np.testing.assert_array_equal(short.x_test, expected.astype(np.float32))
    assert short.y_test.dtype == np.float32


def test_double_precision_of_sets_that_are_not_a_users_own() -> None:
    quadratic = Quadratic(clients=2, condition=3, dimension=3, heterogeneity=1)
    long, short = dataset(quadratic, "float64"), dataset(quadratic)
    assert (long.x_train != short.x_train).any()
    np.testing.assert_array_equal(long.y_train.astype(np.float32), short.y_train)
    mnist = dataset(Mnist(source="bundled", limit=100), "float64")
    np.testing.assert_array_equal(255 * mnist.x_train, np.rint(255 * mnist.x_train))


def test_relative_to_the_data_folder(root: Path) -> None:
    save(root, x=X, y=Y)
    assert Npz(path="mine.npz").make().name == "mine"


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"x": X}, "must hold the array y"),
        ({"x": X, "y": Y, "x_test": X}, "must hold the array y_test"),
        ({"x": X, "y": Y[:5]}, r"the 20 rows of x, got 5"),
        ({"x": X[0, 0], "y": Y}, r"x .* the shape \[N, ...\], .* got \(\)"),
        ({"x": X[:0], "y": Y[:0]}, "not empty"),
        ({"x": X, "y": Y.astype(str)}, "y .* real numbers"),
        ({"x": X, "y": np.where(Y, Y, np.inf)}, "y .* got inf at row 0;"),
        ({"x/a": X, "x/b": X[:9], "y": Y}, r"as many rows .* a \(20, 3\), b \(9, 3\)"),
        ({"x/a": 10**8 + X.astype(int), "y": Y}, "x/a .* at most 16,777,216, got 100"),
        ({"x/a": X, "y": Y, "x_test/b": X, "y_test": Y}, "x_test .* columns of x"),
        ({"x": X, "y": Y, "x_test": X, "y_test": X}, r"y_test .* shape \(\) of y's"),
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


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"y": Y - 1}, "whole numbers from 0"),
        ({"y": Y + 0.5}, "whole numbers from 0"),
        ({"y": 0 * Y}, "two classes or more"),
        ({"y": 70 * (Y > 0)}, "no row of class 1 to 69, but some of class 70"),
        ({"y": 2 * (Y > 0)}, "no row of class 1, but some of class 2"),
        ({"y": Y + 1}, "no row of class 0, but some of class 1"),
        ({"y": 10**9 * Y}, "number the 3 classes by numpy.unique"),
        (
            {"y": Y, "x_test": X, "y_test": Y + 4},
            r"some of class 4; .* by numpy.unique\(numpy.concatenate\(\[y, y_test\]\)",
        ),
    ],
)
def test_targets_that_are_no_classes_are_refused_by_a_loss_of_classes(
    tmp_path: Path, arrays: dict[str, Any], says: str
) -> None:
    data = save(tmp_path, x=X, **arrays).make()
    assert data.num_classes == 0
    assert data.num_frames is None
    problem = SimpleNamespace(loss="auto")
    with pytest.raises(DataError, match=says) as error:
        outputs.loss(problem, data)
    assert "\n" not in str(error.value)


def test_targets_that_are_numbers_stay_numbers(tmp_path: Path) -> None:
    y = np.stack([Y + 0.25, -Y], axis=1)
    data = save(tmp_path, x=X, y=y, x_test=X[:2], y_test=[[1, 2], [3, 4]]).make()
    assert data.y_train.dtype == data.y_test.dtype == np.float32
    row = (data.x_train[:, 0] / 3).astype(int)
    np.testing.assert_array_equal(data.y_train, y[row])


def test_sequences_need_not_hold_every_token(tmp_path: Path) -> None:
    tokens = 2 * np.arange(40).reshape(20, 2)
    data = save(tmp_path, x=tokens, y=tokens).make()
    assert (data.num_classes, data.num_frames) == (79, 2)
    assert data.fields == (Field("", (2,), whole=True),)
    np.testing.assert_array_equal(data.x_train, data.y_train)


def test_inputs_of_any_shape_are_laid_out_and_scaled_one_by_one(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    image = draw.integers(0, 200, (20, 4, 5, 3)).astype(np.uint8)
    tokens, dose = draw.integers(0, 999, (20, 7)), draw.normal(3, 2, 20)
    x = {"x/image": image, "x/tokens": tokens, "x/dose": dose}
    known = save(tmp_path, **x, y=Y)
    data = known.replaced(scale="standard").make()
    assert [field.name for field in data.inputs] == ["image", "tokens", "dose"]
    assert data.columns[59:62] == ("image_59", "tokens_0", "tokens_1")
    assert data.columns[-1] == "dose"
    order = np.array(
        [
            np.flatnonzero((tokens == row).all(axis=1))[0]
            for row in data.x_train[:, 60:67]
        ]
    )
    here = dose[order]
    np.testing.assert_allclose(
        data.x_train[:, -1], (here - here.mean()) / here.std(), rtol=1e-5
    )
    unit = known.replaced(scale="unit").make()
    np.testing.assert_allclose(
        unit.x_train[:, :60], image[order].reshape(16, 60) / 255, rtol=1e-6
    )


def test_partitions_by_class_need_classes(tmp_path: Path) -> None:
    data = save(tmp_path, x=X, y=Y + 0.5).make()
    for partition in (
        Labels(clients=2, classes_per_client=1),
        Dirichlet(clients=2, alpha=1),
    ):
        with pytest.raises(ScenarioError, match="rows have no classes; take iid"):
            partition.make(data, 0)
    config = save(tmp_path, x=X, y=Y + 0.5).replaced(classes=(0, 1))
    with pytest.raises(ScenarioError, match="classes needs classes"):
        config.make()


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
