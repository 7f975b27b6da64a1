"""CIFAR-10's archive of binary batches."""

import gzip
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.config.errors import DataError
from stalesim.simulator.data.cifar10 import ARCHIVE, TEST, TRAIN, Cifar10
from stalesim.simulator.data.cifar_files import PIXELS

RECORD = 1 + PIXELS
RAW = Cifar10(scale="raw")
NAMES = (*TRAIN, TEST)


@pytest.fixture
def batches(tmp_path: Path) -> Path:
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for batch, name in enumerate(NAMES):
        records = np.full((4, RECORD), batch, np.uint8)
        records[:, 0] = np.arange(4) + batch % 5
        records[:, 1025] = 200
        (folder / name).write_bytes(records.tobytes())
    return folder


def pack(
    folder: Path, batches: Path, mode: str = "gz", names: tuple[str, ...] = NAMES
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / ARCHIVE, f"w:{mode}") as archive:
        for name in names:
            archive.add(batches / name, f"cifar-10-batches-bin/{name}")
    return folder / ARCHIVE


@pytest.mark.parametrize("mode", ["gz", ""])
def test_reads(root: Path, batches: Path, mode: str) -> None:
    path = pack(root, batches, mode)
    data = RAW.make()
    assert (data.name, data.num_classes) == ("cifar10 (other copy)", 10)
    assert (data.x_train.shape, data.x_test.shape) == ((20, 3072), (4, 3072))
    assert data.columns[0] == "red_0_0"
    assert data.columns[1024] == "green_0_0"
    np.testing.assert_array_equal(data.x_train[:, 1024], 200)
    np.testing.assert_array_equal(data.x_test[:, 0], 5)
    np.testing.assert_array_equal(data.y_test, np.arange(4))
    first = data.x_train[:, 0].astype(int)
    np.testing.assert_array_equal(np.bincount(first), 4)
    assert set(data.y_train[first == 2]) == {2, 3, 4, 5}
    assert Cifar10().located_files() == [path]


def test_found_at_any_depth(root: Path, batches: Path) -> None:
    pack(root / "sets" / "pictures" / "of all", batches)
    assert RAW.make().name == "cifar10 (other copy)"


def test_missing(root: Path) -> None:
    with pytest.raises(DataError) as error:
        RAW.make()
    assert str(error.value) == (
        f"cifar10 must be in the data folder, {root} (chosen by STALESIM_DATA), got no "
        f"{ARCHIVE}; stalesim data get cifar10"
    )


def test_damaged_archives(root: Path, batches: Path) -> None:
    path = pack(root, batches)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(DataError, match="must be a whole gzip file"):
        RAW.make()
    path.write_bytes(gzip.decompress(whole)[:20_000])
    with pytest.raises(DataError, match="whole zip or tar archive, got: unexpected"):
        RAW.make()
    path.write_bytes(b"no archive at all" * 100)
    with pytest.raises(DataError, match="whole zip or tar archive, got: "):
        RAW.make()
    pack(root, batches, names=TRAIN)
    with pytest.raises(DataError, match=r"must hold test_batch\.bin, got 5 other"):
        RAW.make()


@pytest.mark.parametrize(
    ("first", "end", "says"),
    [
        (b"", -1, "records of 3073 bytes, got 12291 bytes"),
        (b"\x0a", None, "labels from 0 to 9, got 10"),
    ],
)
def test_damaged_batch(
    root: Path, batches: Path, first: bytes, end: int | None, says: str
) -> None:
    path = batches / TEST
    path.write_bytes(first + path.read_bytes()[len(first) : end])
    pack(root, batches)
    with pytest.raises(DataError, match=says):
        RAW.make()


def test_says_which_files_it_reads(root: Path, batches: Path, check_files: Any) -> None:
    pack(root, batches)
    check_files(Cifar10())
