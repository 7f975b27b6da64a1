"""The user's own tables: csv, Parquet and saved sets, in one form."""

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pydantic import ValidationError

from stalesim.simulator.catalogue.data.own_arrays import Npz
from stalesim.simulator.catalogue.data.tables import Csv, Parquet, Tabular
from stalesim.simulator.catalogue.partitions.natural import Natural
from stalesim.simulator.parts.errors import DataError, ScenarioError
from stalesim.simulator.problem.data.base import Dataset, Field

N = 20
FRAME = pd.DataFrame(
    {
        "id": np.arange(N),
        "age": np.arange(N) / 4 - 1,
        "price": np.linspace(-3, 7, N) ** 2,
        "rent": np.arange(N) % 7 + 0.5,
        "kind": np.array(["ab", "aa", "b"])[np.arange(N) % 3],
        "writer": np.array([7, 11, 7, 30])[np.arange(N) % 4],
    }
)
Made = Callable[..., Tabular]


@pytest.fixture(params=["csv", "parquet"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    """Returns a data set of `FRAME`, as each kind of table has it."""

    def make(frame: pd.DataFrame = FRAME, **options: Any) -> Tabular:
        path = tmp_path / "mine.table"
        options = {"path": str(path), "scale": "raw", "test_fraction": 0.25, **options}
        if request.param == "csv":
            frame.to_csv(path, index=False)
            return Csv(**options)
        frame.to_parquet(path, index=False)
        return Parquet(**options)

    return make


def rows(data: Dataset) -> np.ndarray:
    """Returns the numbers of the training rows, which are their first feature."""
    assert data.columns[0] == "id"
    return data.x_train[:, 0].astype(int)


def test_classes(made: Made) -> None:
    data = made(label="kind", features=["id", "age"]).make()
    assert (data.num_classes, data.columns) == (3, ("id", "age"))
    assert (data.x_train.shape, data.x_test.shape) == ((15, 2), (5, 2))
    mine = rows(data)
    np.testing.assert_array_equal(data.x_train[:, 1], FRAME["age"][mine])
    np.testing.assert_array_equal(data.y_train, np.array([1, 0, 2])[mine % 3])
    assert data.y_train.dtype == np.int32


def test_a_number_to_predict(made: Made) -> None:
    data = made(target="price", features=["id"]).make()
    assert (data.num_classes, data.y_train.dtype) == (0, np.float32)
    np.testing.assert_allclose(data.y_train, FRAME["price"][rows(data)], rtol=1e-6)
    assert data.no_classes.startswith("problem.data.target must be label")
    assert "\n" not in data.no_classes


def test_several_numbers_to_predict(made: Made) -> None:
    options = {"target": ["rent", "price"], "groups": ["writer", "kind"]}
    data = made(**options).make()
    assert data.columns == ("id", "age")
    expected = FRAME[["rent", "price"]].to_numpy()[rows(data)]
    np.testing.assert_allclose(data.y_train, expected, rtol=1e-6)
    assert data.num_frames is None


def test_whole_numbers_to_predict_are_no_classes(made: Made) -> None:
    data = made(target="writer", features=["id"]).make()
    np.testing.assert_array_equal(data.y_train, FRAME["writer"][rows(data)])
    assert data.num_classes == 0
    both = made(target=["writer", "id"], features=["age"]).make()
    assert (both.num_classes, both.y_train.shape) == (0, (15, 2))
    with pytest.raises(
        ScenarioError, match=r"classes needs classes: problem.data.targ"
    ):
        made(target="writer", features=["id"], classes=[1, 0]).make()


def test_groups_follow_their_rows(made: Made) -> None:
    """Through the division, the choice of classes, the order and the limit."""
    options = {"label": "kind", "groups": ["writer"], "features": ["id"]}
    for more in (
        {},
        {"classes": (2, 0)},
        {"limit": 4},
        {"classes": (2, 0), "limit": 4},
    ):
        data = made(**options, **more).make()
        (found,) = data.groupings
        assert found.column == "writer"
        told = [int(found.values[value]) for value in found.of_row]
        assert told == FRAME["writer"][rows(data)].tolist()
    clients = Natural(clients=3).make(made(**options).make(), 0)
    assert [part.size for part in clients] == [
        (FRAME["writer"][rows(made(**options).make())] == writer).sum()
        for writer in (7, 11, 30)
    ]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "must have either label, a column of classes, or target, columns of"),
        ({"label": "kind", "target": "age"}, "must have either label"),
        ({"label": "kind", "features": ["kind"]}, "got 'kind' twice; take it out"),
        ({"target": ["age", "age"]}, "got 'age' twice; take it out"),
        ({"target": "age", "groups": "age"}, "got 'age' twice"),
        ({"target": []}, "at least 1 item"),
    ],
)
def test_columns_that_are_used_wrongly(
    made: Made, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValidationError, match=says):
        made(**options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"label": "kinds"}, "problem.data.label must be a column of .*mean 'kind'"),
        ({"target": "prise"}, "problem.data.target must be .* mean 'price'"),
        ({"target": "age", "features": ["x9"]}, "problem.data.features must be a col"),
        ({"label": "kind", "groups": ["writr"]}, "problem.data.groups must be a col"),
        ({"label": "writer"}, "column 'kind' of .* must hold .*numbers, got"),
        ({"target": "kind", "features": ["id"]}, "column 'kind' of .*numbers, got"),
    ],
)
def test_columns_that_do_not_fit(
    made: Made, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(DataError, match=says) as error:
        made(**options).make()
    assert "\n" not in str(error.value)


def test_empty_cells(made: Made) -> None:
    holed = FRAME.astype({"writer": object, "age": object})
    holed.loc[2, ["writer", "age", "kind"]] = None
    options: list[dict[str, Any]] = [
        {"label": "kind", "features": ["id"]},
        {"target": "price", "features": ["id"], "groups": "writer"},
        {"target": "price", "features": ["age"]},
        {"target": "age", "features": ["id"]},
    ]
    for each in options:
        with pytest.raises(DataError, match=r"(line 4|row 3)\D.*fill"):
            made(holed, **each).make()


def packed(pixels: np.ndarray) -> dict[str, Any]:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


def test_pictures_keep_their_shape(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0).integers(256, size=(6, 5, 4), dtype=np.uint8)
    cells = {"image": [packed(one) for one in drawn], "label": [0, 1] * 3}
    config = write_halves(tmp_path, pa.table(cells)[:4], pa.table(cells)[4:])
    data = config(label="label", scale="unit").make()
    assert data.fields == (Field("", (5, 4), False, 255.0),)
    assert (data.x_train.shape, data.x_test.shape) == ((4, 20), (2, 20))
    expected = drawn[4:].reshape(2, 20).astype(np.float32) / 255
    np.testing.assert_allclose(data.x_test, expected, rtol=1e-6)
    np.testing.assert_array_equal(data.y_test, [0, 1])


def test_lists_and_numbers_are_inputs_by_name(tmp_path: Path) -> None:
    tokens = np.arange(12).reshape(4, 3)
    cells = {
        "tokens": tokens.tolist(),
        "age": [0.5, 1.5, 2.5, 3.5],
        "next": tokens[::-1].tolist(),
    }
    pa.parquet.write_table(pa.table(cells), tmp_path / "t.parquet")
    data = Parquet(path=str(tmp_path / "t.parquet"), target="next", scale="raw").make()
    assert data.fields == (Field("tokens", (3,), True), Field("age", ()))
    assert data.columns == ("tokens_0", "tokens_1", "tokens_2", "age")
    assert (data.num_classes, data.num_frames) == (12, 3)
    row = data.x_train[:, 3].astype(int)
    np.testing.assert_array_equal(data.x_train[:, :3], tokens[row])
    np.testing.assert_array_equal(data.y_train, tokens[::-1][row])


def test_lists_are_no_single_numbers(tmp_path: Path) -> None:
    cells = {"a": [[1], [2]], "b": [1.0, 2.0], "c": [3.0, 4.0]}
    pa.parquet.write_table(pa.table(cells), tmp_path / "t.parquet")
    config = Parquet(path=str(tmp_path / "t.parquet"), target=["a", "b"])
    with pytest.raises(
        DataError, match=r"'a' of .* must hold single numbers as one of"
    ):
        config.make()


def write_halves(folder: Path, train: pa.Table, test: pa.Table) -> Callable[..., Any]:
    """Writes rows to train and to test by; returns what makes a data set of them."""
    for name, table in {"train": train, "test": test}.items():
        pa.parquet.write_table(table, folder / f"{name}.parquet")
    paths = {
        "path": str(folder / "train.parquet"),
        "test": str(folder / "test.parquet"),
    }
    return partial(Parquet, **paths)


def test_classes_of_both_files_are_numbered_together(tmp_path: Path) -> None:
    train = pa.table({"a": [1.0, 2.0, 3.0], "k": ["c", "a", "b"]})
    test = pa.table({"k": ["b", "c"], "a": [4.0, 5.0]})
    config = write_halves(tmp_path, train, test)(label="k", scale="raw")
    data = config.make()
    assert data.num_classes == 3
    assert data.y_test.tolist() == [1, 2]
    assert data.x_test.tolist() == [[4], [5]]
    config = write_halves(tmp_path, train, pa.table({"k": ["b"], "b": [1.0]}))
    with pytest.raises(DataError, match="must have the column 'a' of the training"):
        config(label="k").make()
    with pytest.raises(DataError, match=r"data\.test must be a file"):
        Parquet(path=str(tmp_path / "train.parquet"), test="gone", label="k").make()


def test_groups_of_arrays(tmp_path: Path) -> None:
    x, y = np.arange(20.0).reshape(10, 2), np.arange(10) % 2
    writers = np.array([*"ccbbaaccbb"])
    np.savez(tmp_path / "d.npz", x=x, y=y, group=writers)
    config = Npz(path=str(tmp_path / "d.npz"), scale="raw", test_fraction=0.1)
    data = config.make()
    (found,) = data.groupings
    assert (found.column, found.values) == ("group", ("a", "b", "c"))
    row = (data.x_train[:, 0] / 2).astype(int)
    assert [found.values[i] for i in found.of_row] == writers[row].tolist()
    ages = np.arange(10) // 5
    np.savez(
        tmp_path / "d.npz", x=x, y=y, **{"group/writer": writers, "group/age": ages}
    )
    columns = {one.column: one.values for one in config.make().groupings}
    assert columns == {"writer": ("a", "b", "c"), "age": ("0", "1")}


@pytest.mark.parametrize(
    ("group", "says"),
    [
        (np.arange(9), r"a value for each of the 10 rows of x, got the shape \(9,\)"),
        (np.zeros((10, 1)), r"got the shape \(10, 1\)"),
        (np.full(10, np.nan), "a value in every row, got none at row 0; fill"),
        (np.array(["a", "", *"bcdefghi"]), "got none at row 1; fill"),
        (np.full(10, b"a"), r"numbers or text, got \|S1; convert it by astype\(str\)"),
    ],
)
def test_groups_of_arrays_that_do_not_fit(
    tmp_path: Path, group: np.ndarray, says: str
) -> None:
    np.savez(tmp_path / "d.npz", x=np.eye(10), y=np.arange(10) % 2, group=group)
    with pytest.raises(DataError, match=f"^group of .* must h.*{says}"):
        Npz(path=str(tmp_path / "d.npz")).make()


@pytest.mark.parametrize("split_seed", range(3))
def test_missing_values_are_medians_of_training_rows(
    split_seed: int, tmp_path: Path
) -> None:
    # As pandas has it: medians of the training rows, which fill all rows.
    holes = np.random.default_rng(5).random((N, 2)) < 0.4
    frame = FRAME[["id", "age", "rent", "kind"]].copy()
    frame[["age", "rent"]] = frame[["age", "rent"]].mask(holes)
    for word in ("", "NA", "nan"):
        frame.to_csv(path := tmp_path / "mine.csv", index=False, na_rep=word)
        options: dict[str, Any] = {"scale": "raw", "split_seed": split_seed}
        made = partial(Csv, path=str(path), label="kind", **options)
        data = made(missing="median").make()
        train, test = (x[:, 0].astype(int) for x in (data.x_train, data.x_test))
        middle = frame.loc[train, ["age", "rent"]].median()
        everyone = frame[["age", "rent"]].median()
        assert (middle != everyone).any(), "the test rows would not show"
        wanted = frame[["age", "rent"]].fillna(middle)
        np.testing.assert_allclose(data.x_train[:, 1:], wanted.loc[train], rtol=1e-6)
        np.testing.assert_allclose(data.x_test[:, 1:], wanted.loc[test], rtol=1e-6)
    with pytest.raises(DataError, match="must hold finite numbers, got 'nan'"):
        made().make()


def test_what_no_median_can_fill(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    made = partial(Csv, path=str(path), missing="median", test_fraction=0.25)
    FRAME.assign(age=np.nan).to_csv(path, index=False)
    with pytest.raises(DataError, match=r"'age' of .* must hold a number in some trai"):
        made(label="kind", features=("age",)).make()
    FRAME.assign(kind=FRAME["kind"].where(FRAME["id"] > 3)).to_csv(path, index=False)
    with pytest.raises(DataError, match=r"'kind' of .* must hold a label in every row"):
        made(label="kind", features=("age",)).make()
    FRAME.assign(age=FRAME["age"].mask(FRAME["id"] == 2)).to_csv(path, index=False)
    with pytest.raises(DataError, match=r"'kind' of .* must hold finite numbers, got"):
        made(label="id", features=("age", "kind")).make()
