"""Files of Arrow: Parquet, and sets that Hugging Face saved; damaged ones."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from stalesim.simulator.config.errors import DataError
from stalesim.simulator.storage import arrow, limits
from tests.unit.data.saved_set import described, save, save_parts


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
