"""Files of Arrow: Parquet, and sets that Hugging Face saved; damaged ones."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from stalesim.simulator.files.reading import columns, files
from stalesim.simulator.parts.errors import DataError


def test_parquet_is_what_pandas_reads(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": drawn.normal(size=3000), "b": drawn.integers(9, size=3000)}
    )
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    found = columns.parquet(tmp_path / "t.parquet")
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
        columns.parquet(path)
    assert "\n" not in str(error.value)


def test_parquet_that_repeats_a_long_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": ["long" * 1000] * 5000}), path)
    assert path.stat().st_size < 20_000
    assert columns.parquet(path).values("a", "a text")[0] == "long" * 1000
    monkeypatch.setattr(files, "ALWAYS", 10_000_000)
    with pytest.raises(DataError, match="MiB of content in"):
        columns.parquet(path)


def test_parquet_of_a_repeated_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [[7] * 100_000]}), path)
    assert columns.parquet(path).numbers("a").shape == (1, 100_000)
    monkeypatch.setattr(files, "ALWAYS", 700_000)
    with pytest.raises(DataError, match="KiB of content in"):
        columns.parquet(path)


def _bytes_turned(path: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    content = bytearray(path.read_bytes())
    for place in draw.integers(len(content), size=draw.integers(1, 4)):
        content[place] = draw.integers(256)
    path.write_bytes(content)


@pytest.mark.slow
def test_a_damaged_file_is_one_line_or_is_read(tmp_path: Path) -> None:
    """Whatever is damaged; the process would end if pyarrow threw in its own code."""
    cells = pa.table(
        {
            "a": np.arange(50.0),
            "t": ["1", "b"] * 25,
            "l": np.arange(150).reshape(50, 3).tolist(),
            "d": pa.array(["x", "y"] * 25).dictionary_encode(),
        }
    )
    path, refused = tmp_path / "t.parquet", []
    for seed in range(300):
        parquet.write_table(cells, path)
        _bytes_turned(path, seed)
        try:
            found = columns.parquet(path)
            for name in {*found.names} & {"a", "l"}:
                found.numbers(name)
            for name in {*found.names} & {"t", "d"}:
                found.values(name, "a text")
        except DataError as error:
            refused.append(str(error))
    assert len(refused) > 100
    assert not any("\n" in message for message in refused)
