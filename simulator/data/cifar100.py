"""CIFAR-100 from its binary version, packed or not, by fine or coarse classes."""

import re
from pathlib import Path
from typing import ClassVar, Literal

from ..config.errors import DataError
from ..storage import files
from ..storage.published import Published, PublishedFile
from . import names
from .base import Dataset
from .cifar_files import PIXELS, records
from .file_set import FileSet, by_role
from .groups import grouping
from .parts import Data, Scale
from .split import finished

ARCHIVE = "cifar-100-binary.tar.gz"
PARTS = ("train.bin", "test.bin")
FOLDERS = ("cifar100", "cifar100binary")
"""Plain names of the folders in which `train.bin` and `test.bin` are this set's."""
RECORD = 2 + PIXELS
"""Bytes of a record: coarse label, fine label, image."""
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
        PublishedFile(PARTS[0], size=50_000 * RECORD),
        PublishedFile(PARTS[1], size=10_000 * RECORD),
    ),
)


def identify(path: Path) -> str:
    """Returns the official name of a file, by its own and its folder's; "" for others.

    Of any data set the parts might be called so.
    """
    if path.name in PARTS and not files.folder_of(path, FOLDERS):
        return ""
    return path.name if path.name in (ARCHIVE, *PARTS) else ""


FILES = FileSet(
    "cifar100",
    {"archive": (ARCHIVE,), "binary": PARTS},
    find=lambda: by_role(FOLDERS, re.compile(re.escape(ARCHIVE)), identify),
    published=PUBLISHED,
)


class Cifar100(Data):
    """CIFAR-100, binary version: 100 classes, or the 20 coarse ones that hold them.

    The coarse classes, from 0 to 19, also divide the rows for the partition `natural`.
    It has no stand-in.
    """

    kind: Literal["cifar100"] = "cifar100"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"
    labels: Literal["fine", "coarse"] = "fine"
    """Which of its two labels a row is to be classified by."""
    source: Literal["auto", "archive", "binary"] = "auto"
    """Files that are read, by their form; `auto` takes what is there."""

    def make(self) -> Dataset:
        """Returns CIFAR-100 from its archive or its two files.

        Columns are those of the files: all red pixels, then the green, then the blue
        ones.
        """
        chosen = FILES.complete(self.source)
        if not chosen.form:
            raise DataError(
                f"{ARCHIVE} of cifar100 is missing; get it by stalesim data get "
                f"cifar100, or put it in {files.data_folder() / 'cifar100'} (the data "
                f"folder is chosen by {files.FOLDER}); it has no stand-in"
            )
        train, test = records(chosen, ARCHIVE, PARTS, (NUM_COARSE, NUM_FINE))
        fine = self.labels == "fine"
        return finished(
            self,
            FILES.called(chosen) + ("" if fine else " (coarse)"),
            (train.x, train.labels[:, int(fine)]),
            (test.x, test.labels[:, int(fine)]),
            num_classes=NUM_FINE if fine else NUM_COARSE,
            columns=names.pixels(32, 32, names.RGB),
            largest=255.0,
            groupings=(grouping("coarse", train.labels[:, 0]),),
        )

    def located_files(self) -> list[Path]:
        """Returns the files that are read."""
        return FILES.paths(self.source)
