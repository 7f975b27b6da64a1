"""MNIST and Fashion-MNIST: which files are found, and what bad ones say."""

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.data import idx
from stalesim.simulator.catalogue.data.mnist import FashionMnist, Mnist
from stalesim.simulator.parts.errors import DataError

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
IDX = Mnist(source="idx", scale="raw")
WriteSet = Callable[..., dict[str, np.ndarray]]
WriteIdx = Callable[[Path, np.ndarray], Path]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("folder", ["mnist", "MNIST/raw", "sets/of mine/mnist/raw"])
@pytest.mark.parametrize("source", ["idx", "auto"])
def test_reads(
    root: Path, write_set: WriteSet, suffix: str, folder: str, source: str
) -> None:
    arrays = write_set(root / folder, suffix=suffix)
    data = Mnist(source=source, scale="raw").make()
    assert (data.name, data.num_classes) == ("mnist (other copy)", 10)
    assert data.columns[:4] == ("pixel_0_0", "pixel_0_1", "pixel_0_2", "pixel_1_0")
    np.testing.assert_array_equal(
        data.x_test, arrays["t10k-images-idx3-ubyte"].reshape(10, 12)
    )
    np.testing.assert_array_equal(data.y_test, arrays["t10k-labels-idx1-ubyte"])
    # Shuffled, each image with its own label.
    x = arrays[IMAGES].reshape(30, 12)
    order = [int(np.flatnonzero((x == row).all(axis=1))[0]) for row in data.x_train]
    assert sorted(order) == list(range(30)) != order
    np.testing.assert_array_equal(data.y_train, arrays[LABELS][order])


def test_folder_tells_the_sets_apart(root: Path, write_set: WriteSet) -> None:
    write_set(root / "mnist")
    write_set(root / "fashion_mnist", offset=100)
    ours = IDX.make()
    theirs = FashionMnist(scale="raw").make()
    assert [ours.name, theirs.name] == [f"{name} (other copy)" for name in idx.RECORDS]
    assert not np.array_equal(ours.x_train, theirs.x_train)


def test_innermost_folder_tells_the_sets_apart(root: Path, write_set: WriteSet) -> None:
    write_set(root / "mnist" / "Fashion-MNIST" / "raw")
    assert FashionMnist().make().name == "fashion_mnist (other copy)"
    assert Mnist.files.found() == {}


def test_linked_folder_is_searched(
    root: Path, tmp_path: Path, write_set: WriteSet
) -> None:
    write_set(tmp_path / "elsewhere" / "raw")
    (root / "mnist").symlink_to(tmp_path / "elsewhere")
    assert IDX.make().name == "mnist (other copy)"


def test_md5_tells_the_sets_apart(
    root: Path, write_set: WriteSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Official files of Fashion-MNIST, in the data folder itself and in another's.
    write_set(root, suffix=".gz", offset=100)
    (root / "mnist").mkdir()
    official = {}
    for role in idx.ROLES:
        path = root / f"{role}.gz"
        md5 = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        official[md5] = ("fashion_mnist", role)
    (root / f"{IMAGES}.gz").rename(root / "mnist" / "whatever.gz")
    monkeypatch.setattr(idx, "OFFICIAL", official)
    assert FashionMnist().make().name == "fashion_mnist (other copy)"
    assert Mnist.files.found() == {}


def test_official_table_is_complete() -> None:
    assert len(idx.OFFICIAL) == 8
    assert set(idx.OFFICIAL.values()) == {
        (name, role) for name in idx.SETS.values() for role in idx.ROLES
    }


def test_official_number_of_rows_tells_the_half(
    root: Path, write_idx: WriteIdx
) -> None:
    path = write_idx(root / "mnist" / "labels.bin", np.zeros(10_000))
    assert idx.identify(path) == ("mnist", "t10k-labels-idx1-ubyte")
    path = write_idx(root / "mnist" / "other.bin", np.zeros(77))
    assert idx.identify(path) == ("mnist", "")


def test_missing_files_are_named_with_their_place(
    root: Path, write_set: WriteSet
) -> None:
    write_set(root / "mnist")
    (root / "mnist" / LABELS).unlink()
    with pytest.raises(DataError) as error:
        IDX.make()
    message = str(error.value)
    assert message == (
        f"mnist must be in the data folder, {root} (chosen by STALESIM_DATA), got no "
        f"{LABELS}; stalesim data get mnist"
    )
    assert "\n" not in message
    assert IMAGES not in message


def test_no_folder_at_all(root: Path) -> None:
    root.rmdir()
    with pytest.raises(DataError, match=r"must be in the data folder, .* and 2 more; "):
        FashionMnist().make()


@pytest.mark.parametrize("place", [".", "other/raw"])
def test_loose_files_of_unknown_md5_are_remarked(
    root: Path, write_set: WriteSet, place: str
) -> None:
    write_set(root / place)
    with pytest.raises(DataError, match="only a folder named mnist can identify"):
        IDX.make()


def test_auto_takes_what_ships_where_a_file_is_absent(
    root: Path, write_set: WriteSet
) -> None:
    write_set(root / "mnist")
    (root / "mnist" / LABELS).unlink()
    assert Mnist().make().name == "mnist5k"


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


@pytest.mark.parametrize("source", ["idx", "auto"])
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda plain: plain[:-3], "must hold 376 bytes, .* got 373"),
        (lambda plain: packed(plain)[:-12], "must be a whole gzip file"),
        (
            lambda plain: packed(plain)[:12] + bytes(18) + packed(plain)[30:],
            "must be a whole gzip file",
        ),
        (lambda plain: plain + b"\0", "got 377"),
        (
            lambda plain: b"\0\0\x09\x03" + plain[4:],
            "magic number 0x00000803 .* got 0x00000903",
        ),
        (lambda _: b"", "magic number"),
    ],
)
def test_damaged_images(
    root: Path,
    write_set: WriteSet,
    damage: Callable[[bytes], bytes],
    says: str,
    source: str,
) -> None:
    write_set(root / "mnist")
    path = root / "mnist" / IMAGES
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=says) as error:
        Mnist(source=source).make()
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (np.arange(29) % 10, "one label for each of the 30 images"),
        (np.arange(30), "labels from 0 to 9, got 29"),
        (np.arange(0), "at least one row"),
    ],
)
def test_labels_that_do_not_fit(
    root: Path, write_set: WriteSet, write_idx: WriteIdx, labels: np.ndarray, says: str
) -> None:
    write_set(root / "mnist")
    write_idx(root / "mnist" / LABELS, labels)
    with pytest.raises(DataError, match=says):
        IDX.make()


def test_images_of_two_shapes(
    root: Path, write_set: WriteSet, write_idx: WriteIdx
) -> None:
    write_set(root / "mnist")
    write_idx(root / "mnist" / "t10k-images-idx3-ubyte", np.zeros((10, 5, 3)))
    with pytest.raises(DataError, match="images of the shape"):
        IDX.make()


@pytest.mark.parametrize("config", [Mnist(source="idx"), Mnist(), FashionMnist()])
def test_says_which_files_it_reads(
    root: Path, write_set: WriteSet, check_files: Any, config: Any
) -> None:
    write_set(root / "mnist")
    write_set(root / "fashion", suffix=".gz")
    (root / "fashion").rename(root / "fashion_mnist")
    check_files(config)


def test_three_of_four_files_are_not_read(root: Path, write_set: WriteSet) -> None:
    write_set(root / "mnist")
    (root / "mnist" / LABELS).unlink()
    assert Mnist(source="auto").located_files() == []
    assert len(IDX.located_files()) == 3
