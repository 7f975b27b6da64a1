"""CIFAR-100's binary files and their archive."""

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.config.errors import DataError
from stalesim.simulator.data.cifar100 import ARCHIVE, PARTS, RECORD, Cifar100
from stalesim.simulator.partitions.natural import Natural


@pytest.fixture
def binary(root: Path) -> Path:
    """200 rows for training, 100 for testing; coarse class of fine f: f mod 20."""
    folder = root / "cifar-100-binary"
    folder.mkdir()
    for name, num in zip(PARTS, (200, 100), strict=True):
        records = np.full((num, RECORD), 9, np.uint8)
        fine = np.arange(num) % 100
        records[:, 0], records[:, 1], records[:, 2 + 1024] = fine % 20, fine, fine
        (folder / name).write_bytes(records.tobytes())
    return folder


def packed(binary: Path) -> None:
    with tarfile.open(binary.parent / ARCHIVE, "w:gz") as archive:
        archive.add(binary, binary.name)
    for path in binary.iterdir():
        path.unlink()


@pytest.mark.parametrize("form", ["binary", "archive"])
def test_reads(binary: Path, form: Any) -> None:
    if form == "archive":
        packed(binary)
    data = Cifar100(scale="raw").make()
    assert (data.name, data.num_classes) == ("cifar100 (other copy)", 100)
    assert (data.x_train.shape, data.x_test.shape) == ((200, 3072), (100, 3072))
    assert data.columns[1024] == "green_0_0"
    np.testing.assert_array_equal(data.x_train[:, 1024], data.y_train)
    np.testing.assert_array_equal(data.y_test, np.arange(100))
    assert len(Cifar100(source=form).located_files()) == (2 if form == "binary" else 1)


def test_coarse(binary: Path) -> None:
    data = Cifar100(labels="coarse", scale="raw").make()
    assert (data.name, data.num_classes) == ("cifar100 (other copy) (coarse)", 20)
    np.testing.assert_array_equal(data.x_train[:, 1024] % 20, data.y_train)


def test_coarse_classes_are_clients(binary: Path) -> None:
    data = Cifar100().make()
    for rows in Natural(clients=20).make(data, 0):
        assert rows.size == 10
        assert np.unique(data.y_train[rows] % 20).size == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"1" * (RECORD + 1), f"records of {RECORD} bytes, got {RECORD + 1} bytes"),
        (bytes([20, 1, *[0] * 3072]), "labels from 0 to 19, got 20"),
        (bytes([1, 100, *[0] * 3072]), "labels from 0 to 99, got 100"),
    ],
)
def test_damaged(binary: Path, content: bytes, says: str) -> None:
    (binary / PARTS[1]).write_bytes(content)
    with pytest.raises(DataError, match=says):
        Cifar100().make()


def test_parts_elsewhere_are_strangers(binary: Path, root: Path) -> None:
    """Many sets have a `train.bin`."""
    binary.rename(root / "tokens")
    with pytest.raises(DataError, match="stalesim data get cifar100"):
        Cifar100().make()
