"""CIFAR-10 and CIFAR-100 from their binary versions."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import UInt8

from ...files.reading.archive import members
from ...files.reading.published import Published, PublishedFile
from ...parts.errors import DataError
from ...problem.data import base
from ...problem.data.base import Dataset
from ...problem.data.groups import grouping
from ...problem.data.parts import FileData, FileSet, Scale
from ...problem.data.split import Samples, finished

PIXELS = 3 * 32 * 32
"""Bytes of an image: the red, green and blue planes row by row."""
BATCHES = (*(f"data_batch_{batch}.bin" for batch in range(1, 6)), "test_batch.bin")
"""Files of CIFAR-10; the last one holds the test rows."""
HALVES = ("train.bin", "test.bin")
"""Files of CIFAR-100."""
NUM_COARSE, NUM_FINE = 20, 100


def _files(number: int, sha256: str, size: int) -> FileSet:
    archive = f"cifar-{number}-binary.tar.gz"
    url = f"https://www.cs.toronto.edu/~kriz/{archive}"
    published = Published(
        origin="www.cs.toronto.edu/~kriz/cifar.html (Krizhevsky, 2009)",
        licence="no formal licence; used in research, with a citation",
        files=(PublishedFile(archive, f"sha256:{sha256}", size, urls=(url,)),),
    )
    folders = (f"cifar{number}", f"cifar{number}batchesbin", f"cifar{number}binary")
    named = re.compile(re.escape(archive))
    return FileSet(f"cifar{number}", (archive,), published, folders, named)


TEN = _files(
    10,
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    170_052_171,
)
HUNDRED = _files(
    100,
    "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    168_513_733,
)


class Cifar10(FileData):
    """CIFAR-10, binary version: pictures of 3x32x32 pixels in ten classes."""

    kind: Literal["cifar10"] = "cifar10"
    files: ClassVar[FileSet] = TEN
    scale: Scale = "unit"

    def make(self) -> Dataset:
        """Returns CIFAR-10 from its archive.

        Columns are those of the files: all red pixels, then the green, then the blue
        ones.
        """
        paths = self.files.complete()
        *batches, (x, y) = records(paths[self.files.roles[0]], BATCHES, (10,))
        return finished(
            self,
            self.files.called(paths),
            (
                np.concatenate([batch[0] for batch in batches]),
                np.concatenate([batch[1][:, 0] for batch in batches]),
            ),
            (x, y[:, 0]),
            num_classes=10,
            columns=base.pixels(32, 32, base.RGB),
            largest=255.0,
        )


class Cifar100(FileData):
    """CIFAR-100, binary version: 100 classes, or the 20 coarse ones that hold them.

    The coarse classes, from 0 to 19, also divide the rows for the partition `natural`.
    """

    kind: Literal["cifar100"] = "cifar100"
    files: ClassVar[FileSet] = HUNDRED
    scale: Scale = "unit"
    labels: Literal["fine", "coarse"] = "fine"
    """The label of a row, of its two, that is its class."""

    def make(self) -> Dataset:
        paths = self.files.complete()
        train, test = records(
            paths[self.files.roles[0]], HALVES, (NUM_COARSE, NUM_FINE)
        )
        fine = self.labels == "fine"
        return finished(
            self,
            self.files.called(paths) + ("" if fine else " (coarse)"),
            (train[0], train[1][:, int(fine)]),
            (test[0], test[1][:, int(fine)]),
            num_classes=NUM_FINE if fine else NUM_COARSE,
            columns=base.pixels(32, 32, base.RGB),
            largest=255.0,
            groupings=(grouping("coarse", train[1][:, 0]),),
        )


def records(
    archive: Path, names: tuple[str, ...], num_classes: tuple[int, ...]
) -> list[Samples]:
    """Returns pixels `[N, P]` and labels `[N, L]` of some files, in their order.

    Args:
        archive: Path of the archive that holds them.
        names: Names of the files.
        num_classes: Number of classes of each of a record's labels, which come first.

    Raises:
        DataError: The archive is damaged or lacks a file, or a label is too high.

    Source: the CIFAR page, binary versions.
    """
    packed = {Path(name).name: content for name, content in members(archive)}
    absent = [name for name in names if name not in packed]
    if absent:
        raise DataError(
            f"{archive} must hold {absent[0]}, got {len(packed)} other files; "
            "download it again"
        )
    return [_parsed(archive, packed[name], num_classes) for name in names]


def _parsed(
    path: Path, content: bytes, num_classes: tuple[int, ...]
) -> tuple[UInt8[np.ndarray, "N P"], UInt8[np.ndarray, "N L"]]:
    first = len(num_classes)
    size = first + PIXELS
    if not content or len(content) % size:
        raise DataError(
            f"{path} must hold records of {size} bytes, got {len(content)} bytes; "
            "download it again"
        )
    found = np.frombuffer(content, np.uint8).reshape(-1, size)
    for place, number in enumerate(num_classes):
        if (most := found[:, place].max()) >= number:
            raise DataError(
                f"{path} must hold labels from 0 to {number - 1}, got {most}; "
                "download it again"
            )
    return found[:, first:], found[:, :first]
