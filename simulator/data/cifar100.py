"""CIFAR-100 from its binary version, by fine or coarse classes."""

import re
from pathlib import Path
from typing import ClassVar, Literal

from ..storage.published import Published, PublishedFile
from . import names
from .base import Dataset
from .cifar_files import records
from .file_set import FileSet, by_role
from .groups import grouping
from .parts import Data, Scale
from .split import finished

ARCHIVE = "cifar-100-binary.tar.gz"
PARTS = ("train.bin", "test.bin")
FOLDERS = ("cifar100", "cifar100binary")
"""Plain names of folders that are preferred to others."""
NUM_COARSE, NUM_FINE = 20, 100
PUBLISHED = Published(
    origin="www.cs.toronto.edu/~kriz/cifar.html (Krizhevsky, 2009)",
    licence="no formal licence; used in research, with a citation",
    files=(
        PublishedFile(
            ARCHIVE,
            "sha256:58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            168_513_733,
            urls=(f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}",),
        ),
    ),
)


def identify(path: Path) -> str:
    """Returns the official name of a file, by its own name; "" for other files."""
    return ARCHIVE if path.name == ARCHIVE else ""


FILES = FileSet(
    "cifar100",
    (ARCHIVE,),
    find=lambda: by_role(FOLDERS, re.compile(re.escape(ARCHIVE)), identify),
    published=PUBLISHED,
)


class Cifar100(Data):
    """CIFAR-100, binary version: 100 classes, or the 20 coarse ones that hold them.

    The coarse classes, from 0 to 19, also divide the rows for the partition `natural`.
    """

    kind: Literal["cifar100"] = "cifar100"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"
    labels: Literal["fine", "coarse"] = "fine"
    """Which of its two labels a row is to be classified by."""

    def make(self) -> Dataset:
        """Returns CIFAR-100 from its archive.

        Columns are those of the files: all red pixels, then the green, then the blue
        ones.
        """
        paths = FILES.complete()
        train, test = records(paths[ARCHIVE], PARTS, (NUM_COARSE, NUM_FINE))
        fine = self.labels == "fine"
        return finished(
            self,
            FILES.called(paths) + ("" if fine else " (coarse)"),
            (train.x, train.labels[:, int(fine)]),
            (test.x, test.labels[:, int(fine)]),
            num_classes=NUM_FINE if fine else NUM_COARSE,
            columns=names.pixels(32, 32, names.RGB),
            largest=255.0,
            groupings=(grouping("coarse", train.labels[:, 0]),),
        )

    def located_files(self) -> list[Path]:
        return FILES.paths()
