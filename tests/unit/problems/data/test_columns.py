"""Columns of text and of Arrow's files: what is read, and what is refused."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from simulator.config.errors import DataError
from simulator.storage import arrow, limits, pictures
from simulator.storage.columns import ArrowColumns, TextColumns
from tests.unit.problems.data.saved_set import described, save, save_parts

PATH = Path("made")


def columns(**cells: Any) -> ArrowColumns:
    return ArrowColumns(PATH, pa.table(cells))


def packed(pixels: np.ndarray, form: str = "PNG", mode: str | None = None) -> bytes:
    image = Image.fromarray(pixels)
    file = io.BytesIO()
    (image.convert(mode) if mode else image).save(file, form)
    return file.getvalue()


def test_numbers_of_every_type_keep_it() -> None:
    for dtype in ("int8", "uint8", "int16", "int64", "float16", "float32", "float64"):
        given = np.arange(6).astype(dtype)
        found = columns(a=pa.array(given)).numbers("a")
        assert found.dtype == given.dtype
        np.testing.assert_array_equal(found, given)
    truth = columns(a=[True, False]).numbers("a")
    assert (truth.dtype, truth.tolist()) == (np.uint8, [1, 0])
    money = pa.array([1, 2], pa.decimal128(5, 2))
    assert columns(a=money).numbers("a").tolist() == [1.0, 2.0]
    words = pa.array([3, 5, 3]).dictionary_encode()
    assert columns(a=words).numbers("a").tolist() == [3, 5, 3]


@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
def test_nested_lists_are_arrays(kind: str) -> None:
    given = np.arange(2 * 3 * 4, dtype=np.int16).reshape(2, 3, 4)
    inner = pa.int16()
    types = {
        "list": pa.list_(pa.list_(inner)),
        "large": pa.large_list(pa.large_list(inner)),
        "fixed": pa.list_(pa.list_(inner, 4), 3),
    }
    cells = pa.array(given.tolist(), types[kind])
    whole = pa.chunked_array([cells, cells, cells[1:]])
    found = columns(a=whole).numbers("a")
    np.testing.assert_array_equal(found, np.concatenate([given, given, given[1:]]))


def test_an_extension_is_what_it_stores() -> None:
    stored = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2))
    cells = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float64(), (2,)), stored
    )
    assert columns(a=cells).numbers("a").tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_values_are_numbers_or_text(tmp_path: Path) -> None:
    made = columns(
        n=[3, 1],
        t=["b", "a"],
        d=pa.array(["b", "b"]).dictionary_encode(),
        when=pa.array([0, 86_400], pa.timestamp("s")),
    )
    assert [*made.values("n", "a label")] == [3, 1]
    assert made.values("t", "a label") == ["b", "a"]
    assert made.values("d", "a label") == ["b", "b"]
    assert [day[:10] for day in made.values("when", "a day")] == [
        "1970-01-01",
        "1970-01-02",
    ]
    (tmp_path / "t.csv").write_text("n,t\n3,b\n1,4\n")
    text = TextColumns(tmp_path / "t.csv")
    assert [*text.values("n", "a label")] == [3.0, 1.0]
    assert text.values("t", "a label") == ["b", "4"]


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ([1.0, None], "must hold a number in every row, got none in row 2"),
        ([1.0, float("nan")], "must hold finite numbers, got nan in row 2; fill"),
        (np.array([1, np.inf], np.float16), "got inf in row 2"),
        ([1.0, 1e39], "got 1e.*39 in row 2"),
        (["1", "2"], "must hold numbers, got string; encode or remove it"),
        ([[1, 2], [3]], "lists of one length, got 2 in row 1 and 1 in row 2"),
        ([[[1], [2]], [[3], []]], "got 1 in row 1 and 0 in row 2; pad or cut"),
        ([[1, 2], [3, None]], "a number in every row, got none in row 2"),
        ([[1, 2], None], "a number in every row, got none in row 2"),
        ([[1.0, 2.0], [3.0, float("inf")]], "finite numbers, got inf in row 2"),
        ([[], []], "a number in every row, got none in row 1"),
        ([["a"], ["b"]], "must hold numbers, got string"),
    ],
)
def test_numbers_that_are_none(cells: Any, says: str) -> None:
    with pytest.raises(DataError, match=f"^column 'a' of made .*{says}") as error:
        columns(a=cells).numbers("a")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["b", None], "must hold a writer in every row, got none in row 2; fill"),
        (["b", ""], "got none in row 2"),
        ([1.0, float("nan")], "got none in row 2"),
        ([1, None], "got none in row 2"),
        (pa.array(["b", None]).dictionary_encode(), "got none in row 2"),
        ([[1], [2]], r"a writer in every row, got list<.*>; take another column"),
        ([b"1", b"2"], "got binary"),
    ],
)
def test_values_that_are_none(cells: Any, says: str) -> None:
    with pytest.raises(DataError, match=f"^column 'a' of made .*{says}"):
        columns(a=cells).values("a", "a writer")


def test_tables_that_are_none() -> None:
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(DataError, match="every column differently, got 'a' twice"):
        ArrowColumns(PATH, twice)
    with pytest.raises(DataError, match="must hold rows, got none"):
        columns(a=pa.array([], "int64"))


def test_parquet_is_what_pandas_reads(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": drawn.normal(size=3000), "b": drawn.integers(9, size=3000)}
    )
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    found = arrow.parquet(tmp_path / "t.parquet")
    assert found.names == ("a", "b")
    for name in found.names:
        np.testing.assert_array_equal(found.numbers(name), frame[name])


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _turned(content: bytes) -> bytes:
    return content[:20] + bytes([content[20] ^ 255]) + content[21:]


@pytest.mark.parametrize(
    "damage", [_cut, _turned, lambda _: b"", lambda _: b"a,b\n1,2\n"]
)
def test_parquet_that_is_damaged(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(
        pa.table({"a": np.arange(1000.0)}), path, write_page_checksum=True
    )
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        DataError, match=f"^{path} must be a Parquet file, got"
    ) as error:
        arrow.parquet(path)
    assert "\n" not in str(error.value)


def test_parquet_that_repeats_a_long_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": ["long" * 1000] * 5000}), path)
    assert path.stat().st_size < 20_000
    assert arrow.parquet(path).values("a", "a text")[0] == "long" * 1000
    monkeypatch.setattr(limits, "ALWAYS", 10_000_000)
    with pytest.raises(DataError, match="MiB of content in"):
        arrow.parquet(path)


def test_parquet_of_a_repeated_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [[7] * 100_000]}), path)
    assert arrow.parquet(path).numbers("a").shape == (1, 100_000)
    monkeypatch.setattr(limits, "ALWAYS", 700_000)
    with pytest.raises(DataError, match="KiB of content in"):
        arrow.parquet(path)


def test_pictures_are_decoded() -> None:
    drawn = np.random.default_rng(1)
    colours = drawn.integers(256, size=(4, 5, 6, 3), dtype=np.uint8)
    stored = [{"bytes": packed(one), "path": None} for one in colours]
    found = columns(a=stored).numbers("a")
    np.testing.assert_array_equal(found, colours.transpose(0, 3, 1, 2))
    grey = colours[..., 0]
    found = columns(a=[packed(one, "BMP") for one in grey]).numbers("a")
    np.testing.assert_array_equal(found, grey)


def test_pictures_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    one = packed(np.zeros((4, 4), np.uint8))
    noise = np.random.default_rng(2).integers(256, size=(40, 40), dtype=np.uint8)
    noisy = packed(noise)
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    elsewhere = pa.array([{"bytes": None, "path": "a.png"}], kind)
    cases: list[tuple[Any, str]] = [
        (elsewhere, "bytes of a picture in every row, got none in row 1; save the"),
        ([one, b"no picture"], r", row 2 must be a whole picture \(PNG, JPEG"),
        ([noisy, noisy[:-40]], ", row 2 must be a whole picture"),
        (
            [one, packed(np.zeros((4, 5), np.uint8))],
            r"one size and mode, got \(4, 4\) in row 1 and \(4, 5\) in row 2; resize",
        ),
        ([one, packed(np.zeros((4, 4, 3), np.uint8))], r"and \(3, 4, 4\) in row 2"),
    ]
    for cells, says in cases:
        with pytest.raises(DataError, match=f"^column 'a' of made.*{says}") as error:
            columns(a=cells).numbers("a")
        assert "\n" not in str(error.value)
    monkeypatch.setattr(limits, "ALWAYS", 100)
    monkeypatch.setattr(limits, "RATIO", 1)
    large = packed(np.zeros((100, 100), np.uint8))
    with pytest.raises(DataError, match="must not unpack to so much, got"):
        columns(a=[large, large]).numbers("a")
    assert not pictures.is_packed(pa.string())


def test_a_saved_set(tmp_path: Path) -> None:
    first, second = pa.table({"a": [1, 2, 3]}), pa.table({"a": [4]})
    folder = save(tmp_path / "one", first, second)
    assert arrow.splits(folder) == {"": folder}
    assert arrow.saved(folder).numbers("a").tolist() == [1, 2, 3, 4]
    (folder / "cache-17.arrow").write_bytes(b"of no account")
    names = [path.name for path in arrow.paths(folder)]
    assert names == [
        "state.json",
        "data-00000-of-00002.arrow",
        "data-00001-of-00002.arrow",
    ]


def test_a_saved_set_with_its_division(tmp_path: Path) -> None:
    save_parts(tmp_path, train=pa.table({"a": [1, 2]}), test=pa.table({"a": [3]}))
    found = arrow.splits(tmp_path)
    values = {name: arrow.saved(one).numbers("a") for name, one in found.items()}
    assert [[*each] for each in values.values()] == [[1, 2], [3]]
    assert found == {"train": tmp_path / "train", "test": tmp_path / "test"}
    assert len(arrow.paths(tmp_path)) == 5


def test_saved_sets_that_are_none(tmp_path: Path) -> None:
    folder = save(tmp_path / "one", pa.table({"a": [1]}))
    with pytest.raises(DataError, match=r"that save_to_disk .* without dataset_dict"):
        arrow.splits(tmp_path)
    cases: dict[str, str] = {
        "[]": "state.json must describe a saved data set, got a list",
        "{": "state.json must describe a saved data set, got Expecting",
        "{}": "got no list of data files; save it again",
        '{"_data_files": []}': r"got the data files \[\]",
        '{"_data_files": [{"filename": "../../secret"}]}': "got the data files",
        '{"_data_files": [{"filename": ".."}]}': "got the data files",
        '{"_data_files": [{"filename": "gone.arrow"}]}': "gone.arrow must be a whole",
    }
    for text, says in cases.items():
        (folder / "state.json").write_text(text)
        with pytest.raises(DataError, match=says) as error:
            arrow.saved(folder)
        assert "\n" not in str(error.value)
    save(folder, pa.table({"a": [1]}), _indices_data_files=[{"filename": "i.arrow"}])
    with pytest.raises(DataError, match="rows in their order, got a table of indices"):
        arrow.saved(folder)
    save(folder, pa.table({"a": [1]}), pa.table({"b": [1]}))
    with pytest.raises(DataError, match="files of the same columns, as described"):
        arrow.saved(folder)
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["../one"]}')
    with pytest.raises(DataError, match=r"got the splits \['../one'\]"):
        arrow.splits(tmp_path)


def test_rows_without_a_class_are_empty(tmp_path: Path) -> None:
    cells = pa.table({"label": [2, 0, -1], "size": [1, -1, 2]})
    folder = save(tmp_path, described(cells, label="ClassLabel", size="Value"))
    found = arrow.saved(folder)
    assert found.values("size", "a label").tolist() == [1, -1, 2]
    with pytest.raises(DataError, match="a label in every row, got none in row 3"):
        found.values("label", "a label")
    (tmp_path / "other").mkdir()
    found = arrow.saved(
        save(tmp_path / "other", described(cells[:2], label="ClassLabel"))
    )
    assert found.values("label", "a label").tolist() == [2, 0]


@pytest.mark.parametrize(
    "told", ["{", "[]", '{"info": 7}', '{"info": {"features": 7}}']
)
def test_a_damaged_description_of_a_saved_set(tmp_path: Path, told: str) -> None:
    cells = pa.table({"a": [1]}).replace_schema_metadata({"huggingface": told})
    folder = save(tmp_path, cells)
    with pytest.raises(
        DataError, match=r"as described in them, got: .*; save it again"
    ):
        arrow.saved(folder)


def test_nested_features_are_no_classes(tmp_path: Path) -> None:
    told = {"info": {"features": {"a": [{"_type": "ClassLabel"}]}}}
    cells = pa.table({"a": [[-1], [1]]})
    cells = cells.replace_schema_metadata({"huggingface": json.dumps(told)})
    assert arrow.saved(save(tmp_path, cells)).numbers("a").tolist() == [[-1], [1]]


def _bytes_turned(path: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    content = bytearray(path.read_bytes())
    for place in draw.integers(len(content), size=draw.integers(1, 4)):
        content[place] = draw.integers(256)
    path.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "saved"])
def test_a_damaged_file_is_one_line_or_is_read(form: str, tmp_path: Path) -> None:
    """Whatever is damaged; the process would end if pyarrow threw in its own code."""
    cells = described(
        pa.table(
            {
                "a": np.arange(50.0),
                "t": ["1", "b"] * 25,
                "l": np.arange(150).reshape(50, 3).tolist(),
                "d": pa.array(["x", "y"] * 25).dictionary_encode(),
            }
        ),
        d="ClassLabel",
    )
    path, refused = tmp_path / "t.parquet", []
    for seed in range(300):
        if form == "parquet":
            parquet.write_table(cells, path)
        else:
            path = save(tmp_path, cells) / "data-00000-of-00001.arrow"
        _bytes_turned(path, seed)
        try:
            found = arrow.parquet(path) if form == "parquet" else arrow.saved(tmp_path)
            for name in {*found.names} & {"a", "l"}:
                found.numbers(name)
            for name in {*found.names} & {"t", "d"}:
                found.values(name, "a text")
        except DataError as error:
            refused.append(str(error))
    assert len(refused) > 100
    assert not any("\n" in message for message in refused)


def test_a_saved_set_that_is_cut(tmp_path: Path) -> None:
    folder = save(tmp_path, pa.table({"a": np.arange(1000.0)}))
    path = folder / "data-00000-of-00001.arrow"
    whole = path.read_bytes()
    for size in (0, 10, len(whole) // 2):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=f"^{path} must be a whole file of a saved"):
            arrow.saved(folder)
