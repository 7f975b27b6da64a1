"""CIFAR-10 from its binary version, packed or not."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from ...storage.published import Published
from .. import names
from ..base import Dataset
from ..cifar_files import records
from ..file_set import FileSet, by_role
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
        """
        chosen = FILES.complete(self.source)
        if not chosen.form:
            return cifar10_standin(self)
        *batches, test = records(chosen, ARCHIVE, (*TRAIN, TEST), (10,))
        return finished(
            self,
            FILES.called(chosen),
            (
                np.concatenate([batch.x for batch in batches]),
                np.concatenate([batch.labels[:, 0] for batch in batches]),
            ),
            (test.x, test.labels[:, 0]),
            num_classes=10,
            columns=names.pixels(32, 32, names.RGB),
            largest=255.0,
        )

    def located_files(self) -> list[Path]:
        """Returns the batches that are read."""
        return FILES.paths(self.source)
