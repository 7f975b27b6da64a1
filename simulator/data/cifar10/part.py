"""CIFAR-10 from its binary version, packed or not."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import UInt8

from ...config.errors import DataError
from ...storage import files
from ...storage.packed import members
from ...storage.published import Published
from .. import names
from ..base import Dataset
from ..file_set import Chosen, FileSet, by_role
from ..parts import Data, Scale
from ..split import finished
from .record import ARCHIVE, PUBLISHED
from .standin import cifar10_standin

TRAIN = tuple(f"data_batch_{batch}.bin" for batch in range(1, 6))
TEST = "test_batch.bin"
NAME = re.compile(
    rf"{re.escape(ARCHIVE)}|((?:data_batch_[1-5]|test_batch)\.bin)(?:\.gz)?"
)
FOLDERS = ("cifar10", "cifar10batchesbin")
"""Plain names of folders that are preferred to others."""
PIXELS = 3 * 32 * 32
RECORD = 1 + PIXELS
"""Bytes of a record: the label, then the red, green and blue planes row by row."""


def identify(path: Path) -> str:
    """Returns the official name of a file, by its own name; "" for other files."""
    match = NAME.fullmatch(path.name)
    return match[1] or ARCHIVE if match else ""


FILES = FileSet(
    "cifar10",
    {"archive": (ARCHIVE,), "binary": (*TRAIN, TEST)},
    find=lambda: by_role(FOLDERS, NAME, identify),
    remark=lambda form: "" if form == "archive" else f"; all six are in {ARCHIVE}",
    published=PUBLISHED,
)


class Cifar10(Data):
    """CIFAR-10, binary version, else its stand-in."""

    kind: Literal["cifar10"] = "cifar10"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"
    source: Literal["auto", "archive", "binary", "standin"] = "auto"
    """Files that are read, by their form; `auto` takes what is there."""

    def make(self) -> Dataset:
        """Returns CIFAR-10 from its archive, its batches, or its stand-in.

        Columns are those of the files: all red pixels, then the green, then the blue
        ones.

        Raises:
            DataError: Files are demanded and missing, or damaged.
            ScenarioError: The limit is too high.
        """
        chosen = FILES.complete(self.source)
        if not chosen.form:
            return cifar10_standin(self)
        *batches, test = _batches(chosen)
        return finished(
            self,
            FILES.called(chosen),
            (
                np.concatenate([x for x, _ in batches]),
                np.concatenate([y for _, y in batches]),
            ),
            test,
            num_classes=10,
            columns=names.pixels(32, 32, names.RGB),
            largest=255.0,
        )

    def located_files(self) -> list[Path]:
        """Returns the batches that are read."""
        return FILES.paths(self.source)


Batch = tuple[UInt8[np.ndarray, "N P"], UInt8[np.ndarray, " N"]]


def _batches(chosen: Chosen) -> list[Batch]:
    """Returns the six batches, that for testing last.

    Raises:
        DataError: A file is damaged, or the archive lacks a batch.
    """
    if chosen.form == "binary":
        return [_parsed(path, files.read(path)) for path in chosen.paths.values()]
    (path,) = chosen.paths.values()
    packed = {Path(name).name: content for name, content in members(path)}
    absent = [name for name in (*TRAIN, TEST) if name not in packed]
    if absent:
        raise DataError(
            f"{path} must hold {absent[0]}, got {len(packed)} other files; download "
            "it again"
        )
    return [_parsed(path, packed[name]) for name in (*TRAIN, TEST)]


def _parsed(path: Path, content: bytes) -> Batch:
    """Returns the images and labels of a batch.

    Args:
        path: File that it comes from, for the message.
        content: The batch.

    Raises:
        DataError: It holds no whole number of records, or a label above 9.

    Source: the CIFAR-10 page, binary version.
    """
    if not content or len(content) % RECORD:
        raise DataError(
            f"{path} must hold records of {RECORD} bytes, got {len(content)} bytes; "
            "unpack it again"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD)
    x, y = records[:, 1:], records[:, 0]
    if y.max() > 9:
        raise DataError(
            f"{path} must hold labels from 0 to 9, got {y.max()}; unpack it again"
        )
    return x, y
