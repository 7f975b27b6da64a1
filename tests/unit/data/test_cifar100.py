"""CIFAR-100's archive of binary files."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from stalesim.simulator.config.errors import DataError
from stalesim.simulator.data.cifar100 import ARCHIVE, PARTS, Cifar100
from stalesim.simulator.data.cifar_files import PIXELS
from stalesim.simulator.partitions.natural import Natural

RECORD = 2 + PIXELS


def write(root: Path, **changed: bytes) -> Path:
    """Packs 200 rows to train with, 100 to test; coarse class of fine f: f mod 20."""
    with tarfile.open(root / ARCHIVE, "w:gz") as archive:
        for name, num in zip(PARTS, (200, 100), strict=True):
            records = np.full((num, RECORD), 9, np.uint8)
            fine = np.arange(num) % 100
            records[:, 0], records[:, 1], records[:, 2 + 1024] = fine % 20, fine, fine
            content = changed.get(name.removesuffix(".bin"), records.tobytes())
            info = tarfile.TarInfo(f"cifar-100-binary/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return root / ARCHIVE


def test_reads(root: Path) -> None:
    path = write(root)
    data = Cifar100(scale="raw").make()
    assert (data.name, data.num_classes) == ("cifar100 (other copy)", 100)
    assert (data.x_train.shape, data.x_test.shape) == ((200, 3072), (100, 3072))
    assert data.columns[1024] == "green_0_0"
    np.testing.assert_array_equal(data.x_train[:, 1024], data.y_train)
    np.testing.assert_array_equal(data.y_test, np.arange(100))
    assert Cifar100().located_files() == [path]


def test_coarse(root: Path) -> None:
    write(root)
    data = Cifar100(labels="coarse", scale="raw").make()
    assert (data.name, data.num_classes) == ("cifar100 (other copy) (coarse)", 20)
    np.testing.assert_array_equal(data.x_train[:, 1024] % 20, data.y_train)


def test_coarse_classes_are_clients(root: Path) -> None:
    write(root)
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
def test_damaged(root: Path, content: bytes, says: str) -> None:
    write(root, test=content)
    with pytest.raises(DataError, match=says):
        Cifar100().make()


def test_missing() -> None:
    with pytest.raises(
        DataError, match=r"got no cifar-100-.*; stalesim data get cifar1"
    ):
        Cifar100().make()
