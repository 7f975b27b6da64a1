"""Files that would take more memory than they may: refused before it is taken."""

import gzip
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from stalesim.simulator.catalogue.data.own_arrays import Npz
from stalesim.simulator.catalogue.data.tables import Csv
from stalesim.simulator.files.reading import archive, columns, files
from stalesim.simulator.parts.errors import DataError

MEASURED = """
import resource, sys
from pathlib import Path
from stalesim.simulator.files.reading import columns
from stalesim.simulator.catalogue.data.tables import Csv
from stalesim.simulator.catalogue.data.own_arrays import Npz
from stalesim.simulator.parts.errors import DataError
import pyarrow.parquet
path = sys.argv[1]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    if path.endswith(".parquet"):
        columns.measurements(Path(path), ("t",))
    elif path.endswith(".npz"):
        Npz(path=path).make()
    else:
        Csv(path=path, label="y").make()
except DataError as error:
    print(error)
else:
    print("accepted")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    file = io.BytesIO()
    told = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, told)
    return file.getvalue()


def write_bomb(path: Path, size: int) -> None:
    """Writes an npz file of zeros, packed a thousand to one."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archived,
        archived.open("x.npy", "w", force_zip64=True) as file,
    ):
        file.write(header((size // 8,)))
        for _ in range(size // 2**20):
            file.write(bytes(2**20))


def write_promise(path: Path, size: int) -> None:
    """Writes an npz file whose header says more than it has."""
    with zipfile.ZipFile(path, "w") as archived:
        archived.writestr("x.npy", header((size // 8,)) + bytes(64))


def write_gzip_bomb(path: Path, size: int) -> None:
    with gzip.open(path, "wb") as file:
        for _ in range(size // 2**20):
            file.write(b"1,0\n" * 2**18)


def write_rows_bomb(path: Path, size: int) -> None:
    """Writes a Parquet file of one number, again and again."""
    rows = pa.table({"t": pa.repeat(pa.scalar(1.0), size // 8)})
    parquet.write_table(rows, path, compression="zstd")


BOMBS = {
    "tight.npz": (write_bomb, r"got: 600 MiB of content in .* where 256 MiB are"),
    "promise.npz": (write_promise, r"x\.npy, whose header says 600 MiB, in 192 bytes"),
    "tight.csv.gz": (write_gzip_bomb, r"more than the 256 MiB of content that are"),
    "rows.parquet": (write_rows_bomb, r"got: 600 MiB of content in"),
}
SIZE = 600 * 2**20


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_one_line_and_takes_little_memory(name: str, tmp_path: Path) -> None:
    write, says = BOMBS[name]
    path = tmp_path / name
    write(path, SIZE)
    assert path.stat().st_size < SIZE / 50
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    message, grown = done.stdout.splitlines()
    assert message.startswith(str(path))
    with pytest.raises(DataError, match=says):
        raise DataError(message)
    # KiB; the gzip file's content is unpacked up to the limit, and nothing else is.
    most = files.ALWAYS if name.endswith(".gz") else 50 * 2**20
    assert int(grown) * 2**10 < 1.2 * most


def test_what_is_not_packed_so_tight_is_read(tmp_path: Path) -> None:
    assert files.limit(1) == files.limit(2 * 2**20) == files.ALWAYS
    assert files.limit(4 * 2**20) == 400 * 2**20
    assert files.limit(2**40) == files.LARGEST
    files.check(400 * 2**20, 4 * 2**20)
    with pytest.raises(ValueError, match=r"400 MiB of content in 3\.99 MiB, where 399"):
        files.check(400 * 2**20, int(3.99 * 2**20))


def test_the_sizes_of_all_members_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    np.savez_compressed(file, x=np.zeros(3000), y=np.zeros(3000))
    monkeypatch.setattr(files, "ALWAYS", 2 * (3000 * 8 + 128) - 1)  # a header: 128
    with pytest.raises(ValueError, match=r"47\.12 KiB of content in"):
        archive.arrays(file.getvalue())
    monkeypatch.setattr(files, "ALWAYS", 2 * (3000 * 8 + 128))
    assert {*archive.arrays(file.getvalue())} == {"x", "y"}


def test_a_size_that_is_a_lie_is_refused() -> None:
    file = io.BytesIO()
    np.savez(file, x=np.zeros(100))
    content = bytearray(file.getvalue())
    with zipfile.ZipFile(io.BytesIO(content)) as archived:
        size = archived.infolist()[0].file_size
    true, lie = (number.to_bytes(4, "little") for number in (size, 10**9))
    # Newer patch releases of Python see before us that the file is too short for it.
    ours, python_s = r"953\.7 MiB of content in 1\.\d* KiB", "possible zip bomb"
    with pytest.raises((ValueError, zipfile.BadZipFile), match=f"{ours}|{python_s}"):
        archive.arrays(bytes(content.replace(true, lie)))


def test_a_file_of_its_own_size_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros((10, 2)), y=np.arange(10) % 2)
    assert Npz(path=str(tmp_path / "d.npz")).make().num_classes == 2
    monkeypatch.setattr(files, "LARGEST", 100)
    with pytest.raises(DataError, match="must have 100 bytes at most, got"):
        Npz(path=str(tmp_path / "d.npz")).make()


def test_a_table_of_too_much_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,y\n" + "1,0\n2,1\n" * 20)
    assert Csv(path=str(path), label="y").make().num_classes == 2
    monkeypatch.setattr(files, "MOST_TEXT", 100)
    with pytest.raises(DataError, match="must hold 100 bytes of text at most, got 164"):
        Csv(path=str(path), label="y").make()


def test_gzip_files_in_pieces_are_whole(tmp_path: Path) -> None:
    content = np.random.default_rng(1).bytes(3 * files.PIECE + 17)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(content[:100]) + gzip.compress(content[100:]))
    assert files.read(path) == content


def test_text_is_no_measurement(tmp_path: Path) -> None:
    rows = pa.table({"t": ["1", "2"], "u": [1, 2], "v": [[1, 2], [3, 4]]})
    parquet.write_table(rows, tmp_path / "t.parquet")
    for name, says in {
        "t": "must hold numbers, got string",
        "v": "must hold a number in every row, got arrays of 2",
        "w": "must have a column 'w', got t, u, v",
    }.items():
        with pytest.raises(DataError, match=says):
            columns.measurements(tmp_path / "t.parquet", (name,))
    assert columns.measurements(tmp_path / "t.parquet", ("u",))["u"].tolist() == [1, 2]


def test_sizes_as_a_reader_counts_them() -> None:
    sizes = (0, 1023, 1536, 2**30, 10**30)
    told = ["0 bytes", "1023 bytes", "1.5 KiB", "1 GiB", "8.674e+11 EiB"]
    assert [files.shown(size) for size in sizes] == told
