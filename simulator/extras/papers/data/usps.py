"""USPS from its libsvm files."""

import bz2
import io
import re
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from ....files.reading import files
from ....files.reading.published import Published, PublishedFile
from ....parts.errors import DataError
from ....problem.data import base
from ....problem.data.base import Dataset
from ....problem.data.parts import FileData, FileSet, Scale
from ....problem.data.split import finished

TRAIN, TEST = "usps.bz2", "usps.t.bz2"
PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"

PUBLISHED = Published(
    origin="LIBSVM data page, after Hull (1994)",
    licence="none stated; made available by AT&T for research",
    files=(
        PublishedFile(
            TRAIN, "md5:ec16c51db3855ca6c91edd34d0e9b197", urls=(f"{PAGE}{TRAIN}",)
        ),
        PublishedFile(
            TEST, "md5:8ea070ee2aca1ac39742fdd1ef5ed118", urls=(f"{PAGE}{TEST}",)
        ),
    ),
    copies={
        "usps (zip)": Published(
            "zip.train and zip.test of R's package ElemStatLearn, rewritten as text of "
            "the LIBSVM format",
            licence="that of the published files",
            files=(
                PublishedFile("usps", "md5:20f008785c70c0f3a1b712bcab5c4115"),
                PublishedFile("usps.t", "md5:e7a58aa0b6761b277064adff9a96a893"),
            ),
        ),
    },
)
OFFICIAL = {file.checksum.removeprefix("md5:"): file.name for file in PUBLISHED.files}
"""Name of the official files, by their md5."""
NAMES = {"usps": TRAIN, "usps.bz2": TRAIN, "usps.t": TEST, "usps.t.bz2": TEST}
"""Possible names of files, unpacked or not."""
NAME = re.compile("usps", re.IGNORECASE)
FOLDERS = ("usps",)
SIDE, NUM_CLASSES = 16, 10
PIXELS = SIDE * SIDE
BZ2 = b"BZh"
LARGEST_BZ2 = 64 * 2**20
"""Bytes that no official file has; larger files need no md5."""
TOLERANCE = 1e-6
"""Distance of a stored value beyond the extremes, at most: rounding of float32."""


def identify(path: Path) -> str:
    """Returns the official name of a file, "" for a stranger.

    The md5 identifies it, or else the name, which a damaged file keeps.
    """
    if files.head(path, len(BZ2)) == BZ2 and path.stat().st_size < LARGEST_BZ2:
        official = OFFICIAL.get(files.digest(path, "md5"))
        if official is not None:
            return official
    return NAMES.get(path.name.lower(), "")


class Usps(FileData):
    """USPS, digits of 16x16 pixels, from libsvm files."""

    kind: Literal["usps"] = "usps"
    files: ClassVar[FileSet] = FileSet(
        "usps", (TRAIN, TEST), PUBLISHED, FOLDERS, NAME, identify
    )
    scale: Scale = "unit"

    def make(self) -> Dataset:
        """Returns USPS, 16x16 pixels of digits.

        The files have values in [-1, 1] and labels 1 to 10 for the digits 0 to 9; `raw`
        leaves the values, `unit` maps them to [0, 1].

        Source: Hull, A database for handwritten text recognition research (1994); the
            files of the LIBSVM data page.
        """
        paths = self.files.complete()
        return finished(
            self,
            self.files.called(paths),
            parse(paths[TRAIN]),
            parse(paths[TEST]),
            num_classes=NUM_CLASSES,
            columns=base.pixels(SIDE, SIDE),
            smallest=-1.0,
            largest=1.0,
        )


def parse(path: Path) -> tuple[Float64[np.ndarray, "N P"], Int64[np.ndarray, " N"]]:
    """Returns the images and digits of a libsvm file, packed by bzip2 or not.

    Raises:
        DataError: The file cannot be read, is no libsvm file, or holds other labels,
            columns or values.

    Source: the libsvm format: `LABEL COLUMN:VALUE ...`, columns from 1, zeros left out.
    """
    # It imports pandas as well, which other files do not need.
    from sklearn.datasets import load_svmlight_file

    content = files.read(path)
    from_zero: Any = False  # scikit-learn's annotation knows only "auto"
    try:
        if content.startswith(BZ2):
            with bz2.open(io.BytesIO(content)) as file:
                content = files.unpack(file.read, len(content))
        loaded = load_svmlight_file(
            io.BytesIO(content), n_features=PIXELS, zero_based=from_zero
        )
    # A damaged bzip2 stream is an OSError or a ValueError, a damaged line the latter.
    except (OSError, EOFError, ValueError) as error:
        raise DataError(
            f"{path} must be a libsvm file of {PIXELS} columns, packed by bzip2 or "
            f"not, got: {' '.join(str(error).split())}; download it again"
        ) from error
    x, labels = loaded[0].toarray(), np.asarray(loaded[1])
    _check(path, x, labels)
    return x, labels.astype(np.int64) - 1


def _check(
    path: Path, x: Shaped[np.ndarray, "..."], labels: Shaped[np.ndarray, "..."]
) -> None:
    if not x.size:
        raise DataError(
            f"{path} must hold at least one row of {PIXELS} numbers, got none; "
            "download it again"
        )
    wrong = ~np.isin(labels, np.arange(1, NUM_CLASSES + 1))
    if wrong.any():
        raise DataError(
            f"{path} must hold labels from 1 to {NUM_CLASSES}, got "
            f"{labels[wrong][0]:g}; download it again"
        )
    # Written so that a NaN is wrong.
    wrong = ~((x >= -1 - TOLERANCE) & (x <= 1 + TOLERANCE))
    if wrong.any():
        raise DataError(
            f"{path} must hold values from -1 to 1, got {x[wrong][0]:g}; "
            "download it again"
        )
