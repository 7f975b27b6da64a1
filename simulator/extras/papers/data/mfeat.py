"""UCI multiple features: handwritten digits, seen in six ways."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from ....files.reading import files
from ....files.reading.published import Published, PublishedFile
from ....parts.errors import DataError
from ....problem.data import base
from ....problem.data.base import Dataset
from ....problem.data.parts import FileData, FileSet, Roles, Scale
from ....problem.data.split import Samples, divided

VIEWS = {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}
"""Number of columns of each view, in the order of the columns: Fourier coefficients,
profile correlations, Karhunen-Loeve coefficients, averages of pixels in windows of
2 x 3, Zernike moments, and morphological features."""
NUM_CLASSES = 10
TEXTS = tuple(f"mfeat-{view}" for view in VIEWS)
"""Official names of the six files."""
NAME = re.compile("mfeat", re.IGNORECASE)
FOLDERS = ("mfeat", "multiplefeatures")
PUBLISHED = Published(
    origin="UCI 72, Multiple Features (Duin, 1998)",
    licence="CC BY 4.0",
    files=tuple(PublishedFile(name) for name in TEXTS),
    by_hand="download the zip of archive.ics.uci.edu/dataset/72 and unpack its six "
    "files mfeat-fou, mfeat-fac, ...; UCI publishes no checksum",
)


def identify(path: Path) -> str:
    """Returns the official name of a file, by its own name; "" for a stranger."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".txt")
    return name if name in TEXTS else ""


class Mfeat(FileData):
    """UCI 72, 2,000 digits in six views of 649 columns.

    The views, in the order of the columns: fou 76, fac 216, kar 64, pix 240, zer 47,
    mor 6. The partition `views` gives whole views to parties.
    """

    kind: Literal["mfeat"] = "mfeat"
    files: ClassVar[FileSet] = FileSet(
        "mfeat", TEXTS, PUBLISHED, FOLDERS, NAME, identify
    )
    scale: Scale = "standard"

    def make(self) -> Dataset:
        """Returns 2,000 digits of 649 columns in six views, 200 digits a class.

        There is no official division: a fraction `test_fraction` of the rows, drawn by
        `split_seed`, is for testing, and all are shuffled, because the files are sorted
        by digit.

        Source: UCI 72, Multiple Features (Duin, 1998).
        """
        paths = self.files.complete()
        return divided(
            self,
            self.files.called(paths),
            _samples(paths),
            num_classes=NUM_CLASSES,
            columns=tuple(
                column
                for view, width in VIEWS.items()
                for column in base.counted(view, width)
            ),
            views=tuple(view for view, width in VIEWS.items() for _ in range(width)),
        )


def _samples(paths: Roles) -> Samples:
    widths = dict(zip(TEXTS, VIEWS.values(), strict=True))
    views = [_view(paths[name], widths[name]) for name in TEXTS]
    for name, view in zip(TEXTS, views, strict=True):
        if len(view) != len(views[0]):
            raise DataError(
                f"{paths[name]} must have the {len(views[0])} rows of "
                f"{TEXTS[0]}, got {len(view)}; download it again"
            )
    # The files have no labels: the same number of rows for each digit, from 0 to 9.
    each, rest = divmod(len(views[0]), NUM_CLASSES)
    if rest or not each:
        raise DataError(
            f"{paths[TEXTS[0]]} must have as many rows for each of the "
            f"{NUM_CLASSES} digits, got {len(views[0])} in all; download it again"
        )
    return np.concatenate(views, axis=1), np.repeat(np.arange(NUM_CLASSES), each)


def _view(path: Path, width: int) -> Float64[np.ndarray, "N P"]:
    text = files.read(path).decode("utf-8", "replace")
    rows = [line.split() for line in text.splitlines() if line.strip()]
    wrong = next((i for i, row in enumerate(rows) if len(row) != width), None)
    if wrong is not None or not rows:
        got = f"{len(rows[wrong])} in row {wrong + 1}" if wrong is not None else "none"
        raise DataError(
            f"{path} must hold {width} numbers a row, got {got}; download it again"
        )
    try:
        found = np.array(rows, np.float64)
    except ValueError as error:
        raise DataError(
            f"{path} must hold numbers, got: {error}; download it again"
        ) from error
    if not np.isfinite(found).all():
        raise DataError(f"{path} must hold finite numbers; download it again")
    return found
