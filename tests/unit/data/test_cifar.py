"""The archives of CIFAR-10 and CIFAR-100: made, read, damaged."""

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.data.cifar import (
    BATCHES,
    HALVES,
    PIXELS,
    Cifar10,
    Cifar100,
)
from stalesim.simulator.catalogue.partitions.natural import Natural
from stalesim.simulator.parts.errors import DataError

TEN, HUNDRED = "cifar-10-binary.tar.gz", "cifar-100-binary.tar.gz"
RAW = Cifar10(scale="raw")


def records(*columns: Any) -> np.ndarray:
    """Labels and images of nines, with the last column as their first green pixel."""
    *labels, green = columns
    found = np.full((len(labels[0]), len(labels) + PIXELS), 9, np.uint8)
    found[:, : len(labels)] = np.transpose(labels)
    found[:, len(labels) + 1024] = green
    return found


def batches() -> dict[str, bytes]:
    """Four rows in each of six files of CIFAR-10, and the file's number in each."""
    labels = [np.arange(4) + batch % 5 for batch in range(6)]
    made = (records(own, batch) for batch, own in enumerate(labels))
    return {name: rows.tobytes() for name, rows in zip(BATCHES, made, strict=True)}


def halves() -> dict[str, bytes]:
    """200 rows to train with, 100 to test; the coarse class of fine f is f mod 20."""
    fine = [np.arange(num) % 100 for num in (200, 100)]
    made = (records(own % 20, own, own) for own in fine)
    return {name: rows.tobytes() for name, rows in zip(HALVES, made, strict=True)}


def pack(path: Path, contents: dict[str, bytes], mode: str = "gz") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, f"w:{mode}") as archive:
        for name, content in contents.items():
            info = tarfile.TarInfo(f"folder/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize(
    ("place", "mode"), [("", "gz"), ("", ""), ("sets/pictures/of all", "gz")]
)
def test_ten_classes(root: Path, place: str, mode: str, check_files: Any) -> None:
    path = pack(root / place / TEN, batches(), mode)
    data = RAW.make()
    assert (data.name, data.num_classes) == ("cifar10 (other copy)", 10)
    assert (data.x_train.shape, data.x_test.shape) == ((20, 3072), (4, 3072))
    assert data.columns[0] == "red_0_0"
    assert data.columns[1024] == "green_0_0"
    np.testing.assert_array_equal(data.x_train[:, 0], 9)
    np.testing.assert_array_equal(data.x_test[:, 1024], 5)
    np.testing.assert_array_equal(data.y_test, np.arange(4))
    batch = data.x_train[:, 1024].astype(int)
    np.testing.assert_array_equal(np.bincount(batch), 4)
    assert set(data.y_train[batch == 2]) == {2, 3, 4, 5}
    assert Cifar10().located_files() == [path]
    check_files(Cifar10())


@pytest.mark.parametrize(
    ("labels", "name", "count"), [("fine", "", 100), ("coarse", " (coarse)", 20)]
)
def test_a_hundred_classes(root: Path, labels: Any, name: str, count: int) -> None:
    path = pack(root / HUNDRED, halves())
    data = Cifar100(labels=labels, scale="raw").make()
    assert (data.name, data.num_classes) == (f"cifar100 (other copy){name}", count)
    assert (data.x_train.shape, data.x_test.shape) == ((200, 3072), (100, 3072))
    assert data.columns[1024] == "green_0_0"
    np.testing.assert_array_equal(data.x_train[:, 1024] % count, data.y_train)
    np.testing.assert_array_equal(data.y_test, np.arange(100) % count)
    assert Cifar100().located_files() == [path]
    for rows in Natural(clients=20).make(data, 0):  # the coarse classes
        assert rows.size == 10
        assert np.unique(data.y_train[rows] % 20).size == 1


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (RAW, f"got no {TEN}; stalesim data get cifar10"),
        (Cifar100(), f"got no {HUNDRED}; stalesim data get cifar100"),
    ],
)
def test_missing(root: Path, config: Any, says: str) -> None:
    with pytest.raises(DataError) as error:
        config.make()
    start = f"{config.kind} must be in the data folder, {root} (chosen by STALESIM_DATA"
    assert str(error.value) == f"{start}), {says}"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda whole: whole[:-20], "must be a whole gzip file"),
        (
            lambda whole: gzip.decompress(whole)[:20_000],
            "whole zip or tar archive, got: unexpected",
        ),
        (lambda _: b"no archive at all" * 100, "whole zip or tar archive, got: "),
    ],
)
def test_damaged_archives(root: Path, damage: Any, says: str) -> None:
    path = pack(root / TEN, batches())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=says):
        RAW.make()


@pytest.mark.parametrize(
    ("config", "content", "says"),
    [
        (RAW, None, r"must hold test_batch\.bin, got 5 other"),
        (RAW, b"1" * 12_291, "records of 3073 bytes, got 12291 bytes"),
        (RAW, b"", "records of 3073 bytes, got 0 bytes"),
        (RAW, b"\x0a" * 3073, "labels from 0 to 9, got 10"),
        (Cifar100(), None, r"must hold test\.bin, got 1 other"),
        (Cifar100(), b"1" * 3075, "records of 3074 bytes, got 3075 bytes"),
        (Cifar100(), bytes([20, 1, *[0] * 3072]), "labels from 0 to 19, got 20"),
        (Cifar100(), bytes([1, 100, *[0] * 3072]), "labels from 0 to 99, got 100"),
    ],
)
def test_damaged_test_rows(
    root: Path, config: Any, content: bytes | None, says: str
) -> None:
    contents = batches() if config is RAW else halves()
    contents.popitem()
    if content is not None:
        contents[BATCHES[-1] if config is RAW else HALVES[-1]] = content
    pack(root / (TEN if config is RAW else HUNDRED), contents)
    with pytest.raises(DataError, match=says):
        config.make()
