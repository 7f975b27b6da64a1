"""CIFAR-10 from its binary version."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from ..storage.published import Published, PublishedFile
from . import names
from .base import Dataset
from .cifar_files import records
from .file_set import FileSet, by_role
from .parts import Data, Scale
from .split import finished

ARCHIVE = "cifar-10-binary.tar.gz"
TRAIN = tuple(f"data_batch_{batch}.bin" for batch in range(1, 6))
TEST = "test_batch.bin"
FOLDERS = ("cifar10", "cifar10batchesbin")
"""Plain names of folders that are preferred to others."""
PUBLISHED = Published(
    origin="www.cs.toronto.edu/~kriz/cifar.html (Krizhevsky, 2009)",
    licence="no formal licence; used in research, with a citation",
    files=(
        PublishedFile(
            ARCHIVE,
            "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            170_052_171,
            urls=(f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}",),
        ),
    ),
)


def identify(path: Path) -> str:
    """Returns the official name of a file, by its own name; "" for other files."""
    return ARCHIVE if path.name == ARCHIVE else ""


FILES = FileSet(
    "cifar10",
    (ARCHIVE,),
    find=lambda: by_role(FOLDERS, re.compile(re.escape(ARCHIVE)), identify),
    published=PUBLISHED,
)


class Cifar10(Data):
    """CIFAR-10, binary version: pictures of 3x32x32 pixels in ten classes."""

    kind: Literal["cifar10"] = "cifar10"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"

    def make(self) -> Dataset:
        """Returns CIFAR-10 from its archive.

        Columns are those of the files: all red pixels, then the green, then the blue
        ones.
        """
        paths = FILES.complete()
        *batches, test = records(paths[ARCHIVE], (*TRAIN, TEST), (10,))
        return finished(
            self,
            FILES.called(paths),
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
        return FILES.paths()
