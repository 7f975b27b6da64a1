"""Columns of text and of Arrow tables: what is read, and what is refused."""

import io
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from stalesim.simulator.files.reading import files, pictures
from stalesim.simulator.files.reading.columns import ArrowColumns, TextColumns
from stalesim.simulator.parts.errors import DataError

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
    monkeypatch.setattr(files, "ALWAYS", 100)
    monkeypatch.setattr(files, "RATIO", 1)
    large = packed(np.zeros((100, 100), np.uint8))
    with pytest.raises(DataError, match="must not unpack to so much, got"):
        columns(a=[large, large]).numbers("a")
    assert not pictures.is_packed(pa.string())


def test_time_grows_with_the_number_of_columns_and_not_its_square(
    tmp_path: Path,
) -> None:
    number = 40_000
    names = [f"g{i}" for i in range(number)]
    row = ",".join(map(str, range(number)))
    path = tmp_path / "wide.csv"
    path.write_text(f"{','.join(names)}\n{row}\n{row}\n")
    start = time.process_time()
    text = TextColumns(path)
    cells = text.several(names)
    arrow = ArrowColumns(path, pa.table({name: [1.0] for name in names}))
    # Comparing each name with all others takes over a minute, this a second.
    assert time.process_time() - start < 20
    assert cells["g39999"].tolist() == [39999, 39999]
    assert len(arrow.names) == number


def test_a_large_cell_is_refused_without_many_copies_of_it(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    size = 64 << 20
    path.write_bytes(b"a,b\n1," + b"x" * size + b"\n")
    code = (
        "import resource, sys, pathlib\n"
        "from stalesim.simulator.files.reading.columns import TextColumns\n"
        "used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "before = used()\n"
        "try:\n"
        "    TextColumns(pathlib.Path(sys.argv[1]))\n"
        "except ValueError as error:\n"
        "    print(used() - before, error)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    taken, says = out.split(" ", 1)
    assert "must be comma-separated text" in says
    # The file, the text of its line, and that line while it grows.
    assert int(taken) < 5 * size
