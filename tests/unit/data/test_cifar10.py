"""CIFAR-10's binary batches."""

import gzip
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.config.errors import DataError
from stalesim.simulator.data.cifar10.part import TEST, TRAIN, Cifar10
from stalesim.simulator.data.cifar10.record import ARCHIVE
from stalesim.simulator.data.cifar_files import PIXELS

RECORD = 1 + PIXELS
BINARY = Cifar10(source="binary", scale="raw")


@pytest.fixture
def batches(root: Path) -> Path:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir()
    for batch, name in enumerate((*TRAIN, TEST)):
        records = np.full((4, RECORD), batch, np.uint8)
        records[:, 0] = np.arange(4) + batch % 5
        records[:, 1025] = 200
        (folder / name).write_bytes(records.tobytes())
    return folder


@pytest.mark.parametrize("source", ["binary", "auto"])
def test_reads(batches: Path, source: str) -> None:
    data = Cifar10(source=source, scale="raw").make()
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


def test_found_at_any_depth(batches: Path, root: Path) -> None:
    (root / "sets" / "pictures").mkdir(parents=True)
    batches.rename(root / "sets" / "pictures" / "unpacked")
    assert BINARY.make().name == "cifar10 (other copy)"


def test_missing_batch(batches: Path, root: Path) -> None:
    (batches / TRAIN[2]).unlink()
    with pytest.raises(DataError) as error:
        BINARY.make()
    message = str(error.value)
    assert message.startswith(
        f"{TRAIN[2]} of cifar10 is missing; put it in {root / 'cifar10'}"
    )
    assert Cifar10().make().name == "cifar10-standin"


def pack(batches: Path, mode: str, names: tuple[str, ...] = (*TRAIN, TEST)) -> Path:
    path = batches.parent / ARCHIVE
    with tarfile.open(path, f"w:{mode}") as archive:
        for name in names:
            archive.add(batches / name, f"cifar-10-batches-bin/{name}")
    return path


@pytest.mark.parametrize("mode", ["gz", ""])
def test_reads_the_archive_as_what_is_in_it(batches: Path, mode: str) -> None:
    unpacked = BINARY.make()
    pack(batches, mode)
    shutil.rmtree(batches)
    for source in ("archive", "auto"):
        data = Cifar10(source=source, scale="raw").make()
        assert data.name == "cifar10 (other copy)"
        for one, other in zip(data[1:5], unpacked[1:5], strict=True):
            np.testing.assert_array_equal(one, other)
    assert Cifar10().located_files() == [batches.parent / ARCHIVE]


def test_damaged_archives(batches: Path) -> None:
    path = pack(batches, "gz")
    whole = path.read_bytes()
    source = Cifar10(source="archive")
    path.write_bytes(whole[:-20])
    with pytest.raises(DataError, match="must be a whole gzip file"):
        source.make()
    path.write_bytes(gzip.decompress(whole)[:20_000])
    with pytest.raises(DataError, match="whole zip or tar archive, got: unexpected"):
        source.make()
    path.write_bytes(b"no archive at all" * 100)
    with pytest.raises(DataError, match="whole zip or tar archive, got: "):
        source.make()
    pack(batches, "gz", TRAIN)
    with pytest.raises(DataError, match=r"must hold test_batch\.bin, got 5 other"):
        source.make()


def test_truncated_batch(batches: Path) -> None:
    path = batches / TEST
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="records of 3073 bytes, got 12291 bytes"):
        BINARY.make()


def test_label_out_of_range(batches: Path) -> None:
    path = batches / TEST
    path.write_bytes(b"\x0a" + path.read_bytes()[1:])
    with pytest.raises(DataError, match="labels from 0 to 9, got 10"):
        Cifar10().make()


@pytest.mark.parametrize("source", ["binary", "auto"])
def test_says_which_files_it_reads(
    batches: Path, check_files: Any, source: str
) -> None:
    check_files(Cifar10(source=source))  # pyright: ignore
