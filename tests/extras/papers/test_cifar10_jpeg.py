"""CIFAR-10 through JPEG: small files of made pictures, packed and not."""

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stalesim.simulator.extras.papers.data import cifar10_jpeg
from stalesim.simulator.extras.papers.data.cifar10_jpeg import ARCHIVE, Cifar10Jpeg
from stalesim.simulator.files.reading import files
from stalesim.simulator.parts.errors import DataError

RAW = Cifar10Jpeg(scale="raw")
CLASSES = "abcdefghij"


def jpeg(colour: tuple[int, int, int], side: int = 32) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side), colour).save(file, "JPEG", quality=95)
    return file.getvalue()


def contents() -> dict[str, bytes]:
    """Returns pictures whose red says the class, and whose green the half."""
    return {
        f"{half}/{name}/{one:04}.jpg": jpeg((20 * number, green, 0))
        for half, count, green in (("test", 1, 0), ("train", 2, 200))
        for number, name in reversed([*enumerate(CLASSES)])
        for one in range(count)
    }


def pack(root: Path, name: str = ARCHIVE, **changed: bytes) -> Path:
    path = root / "cifar10_jpeg" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    inside = {f"images/{key}": value for key, value in (contents() | changed).items()}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for key, value in inside.items():
                archive.writestr(key, value)
        return path
    with tarfile.open(path, "w:xz") as archive:
        for key, value in inside.items():
            member = tarfile.TarInfo(key)
            member.size = len(value)
            archive.addfile(member, io.BytesIO(value))
    return path


def unpack(root: Path) -> None:
    for name, content in contents().items():
        path = root / "cifar10_jpeg" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.mark.parametrize("write", [pack, lambda root: pack(root, "images.zip"), unpack])
def test_pictures_are_rows_of_planes_with_the_class_of_their_folder(
    root: Path, write: Callable[[Path], Any], check_files: Callable[[Any], None]
) -> None:
    write(root)
    data = RAW.make()
    assert (data.name, data.num_classes) == ("cifar10 (jpeg), other copy", 10)
    assert (data.x_train.shape, data.x_test.shape) == ((20, 3072), (10, 3072))
    halves = (data.x_train, data.y_train, 200), (data.x_test, data.y_test, 0)
    for x, y, green in halves:
        planes = x.reshape(len(x), 3, -1)
        np.testing.assert_allclose(planes[:, 0].mean(1), 20 * y, atol=3)
        np.testing.assert_allclose(planes[:, 1], green, atol=4)
    assert data.columns[1024] == "green_0_0"
    check_files(RAW)


def test_the_known_archive_is_never_called_cifar10_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = cifar10_jpeg.PUBLISHED.files
    known = file._replace(checksum=f"md5:{files.digest(pack(root), 'md5')}")
    published = cifar10_jpeg.PUBLISHED._replace(files=(known,))
    monkeypatch.setattr(cifar10_jpeg, "PUBLISHED", published)
    assert RAW.make().name == "cifar10 (jpeg)"


def test_what_is_missing_or_damaged_is_named(root: Path) -> None:
    with pytest.raises(DataError, match=r"no images\.tar\.xz, train/CLASS/\*\.jpg; "):
        RAW.make()
    pack(root, **{"test/a/0000.jpg": b"no picture"})
    with pytest.raises(DataError, match=r"test/a of .*xz, row 1 must be a whole pict"):
        RAW.make()
    pack(root, **{"test/a/0000.jpg": jpeg((0, 0, 0), 16)})
    with pytest.raises(DataError, match=r"must hold pictures of \(3, 32, 32\) bytes"):
        RAW.make()
    path = pack(root, **{"train/k/0000.jpg": jpeg((0, 0, 0))})
    with pytest.raises(DataError, match="10 classes in train and in test, got 11 and"):
        RAW.make()
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match="must be a whole zip or tar archive, got"):
        RAW.make()
