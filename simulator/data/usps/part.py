"""USPS from its libsvm files, or from one h5 file."""

import bz2
import importlib
import io
import re
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from ...config.errors import DataError
from ...storage import files, limits
from ...storage.published import Published
from .. import names
from ..base import Dataset
from ..classes import Samples
from ..file_set import FileSet, by_role
from ..parts import Data, Scale
from ..split import finished
from .record import PUBLISHED
from .standin import usps_standin

TRAIN, TEST, H5 = "usps.bz2", "usps.t.bz2", "usps.h5"
OFFICIAL = {file.checksum.removeprefix("md5:"): file.name for file in PUBLISHED.files}
"""Name of the official files, by their md5."""
NAMES = {"usps": TRAIN, "usps.bz2": TRAIN, "usps.t": TEST, "usps.t.bz2": TEST}
"""Possible names of files, unpacked or not."""
NAME = re.compile("usps", re.IGNORECASE)
FOLDERS = ("usps",)
HALVES = ("train", "test")
SIDE, NUM_CLASSES = 16, 10
PIXELS = SIDE * SIDE
BZ2, HDF5 = b"BZh", b"\x89HDF\r\n\x1a\n"
LARGEST_BZ2 = 64 * 2**20
"""Bytes that no official file has; larger files need no md5."""
TOLERANCE = 1e-6
"""Distance of a stored value beyond the extremes, at most: rounding of float32."""


def identify(path: Path) -> str:
    """Returns the official name of a file, "" for a stranger.

    The md5 tells it, or the signature of HDF5, or else the name, which a damaged file
    keeps.
    """
    start, name = files.head(path, len(HDF5)), path.name.lower()
    if start.startswith(BZ2) and path.stat().st_size < LARGEST_BZ2:
        official = OFFICIAL.get(files.md5(path))
        if official is not None:
            return official
    ours = "usps" in name or files.folder_of(path, FOLDERS)
    if name == H5 or (start == HDF5 and ours):
        return H5
    return NAMES.get(name, "")


FILES = FileSet(
    "usps",
    {"libsvm": (TRAIN, TEST), "h5": (H5,)},
    find=lambda: by_role(FOLDERS, NAME, identify),
    published=PUBLISHED,
)


class Usps(Data):
    """USPS, digits of 16x16 pixels, from libsvm or h5 files, else its stand-in."""

    kind: Literal["usps"] = "usps"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "unit"
    source: Literal["auto", "libsvm", "h5", "standin"] = "auto"
    """Files that are read, by their form; `auto` takes what is there."""

    def make(self) -> Dataset:
        """Returns USPS, 16x16 pixels of digits, or its stand-in.

        The libsvm files have values in [-1, 1] and labels 1 to 10 for the digits 0 to
        9, the h5 file values in [0, 1]; `raw` leaves them, `unit` maps both to [0, 1].

        Raises:
            DataError: Files are demanded and missing, or damaged, or h5py is not
                installed for an h5 file.
            ScenarioError: The limit is too high, or the classes do not exist.

        Source: Hull, A database for handwritten text recognition research (1994); the
            files of the LIBSVM data page.
        """
        chosen = FILES.complete(self.source)
        form, found = chosen
        if not form:
            return usps_standin(self)
        if form == "h5":
            train, test = parse_h5(found[H5])
        else:
            train, test = parse(found[TRAIN]), parse(found[TEST])
        return finished(
            self,
            FILES.called(chosen),
            train,
            test,
            num_classes=NUM_CLASSES,
            columns=names.pixels(SIDE, SIDE),
            smallest=0.0 if form == "h5" else -1.0,
            largest=1.0,
        )

    def found_files(self) -> list[Path]:
        """Returns the files that are read."""
        return FILES.paths(self.source)


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
                content = limits.unpack(file.read, len(content))
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
    _check(path, x, labels, -1, 1)
    return x, labels.astype(np.int64) - 1


def parse_h5(path: Path) -> tuple[Samples, Samples]:
    """Returns the training and the test rows of the h5 file.

    Raises:
        DataError: h5py is not installed, or the file is damaged, or has other groups,
            labels, columns or values.
    """
    try:
        # Not a dependency, because nothing else needs it.
        h5py = importlib.import_module("h5py")
    except ImportError:
        raise DataError(
            f"{path} must be read by h5py, got an environment without it; install "
            f"stalesim[h5], or put {TRAIN} and {TEST} in "
            f"{files.data_folder() / 'usps'}, or take source: standin"
        ) from None
    try:
        with h5py.File(path, "r") as file:
            names = ("data", "target")
            size = sum(file[half][name].nbytes for half in HALVES for name in names)
            limits.check(size, path.stat().st_size)
            train, test = (
                (np.asarray(file[half]["data"]), np.asarray(file[half]["target"]))
                for half in HALVES
            )
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise DataError(
            f"{path} must be an HDF5 file with data and target in /train and /test, "
            f"got: {' '.join(str(error).split())}; download it again"
        ) from error
    for x, labels in (train, test):
        _check(path, x, labels, 0, 0)
    return train, test


def _check(
    path: Path,
    x: Shaped[np.ndarray, "..."],
    labels: Shaped[np.ndarray, "..."],
    lowest: int,
    first: int,
) -> None:
    """Refuses arrays that are not images with values from `lowest` to 1 and labels."""
    numbers = x.dtype.kind in "fiu" and labels.dtype.kind in "fiu"
    shaped = x.shape[1:] == (PIXELS,) and labels.shape == x.shape[:1]
    if not (numbers and shaped and x.size):
        raise DataError(
            f"{path} must hold at least one row of {PIXELS} numbers and one label for "
            f"each, got {x.shape} and {labels.shape}; download it again"
        )
    last = first + NUM_CLASSES - 1
    wrong = ~np.isin(labels, np.arange(first, last + 1))
    if wrong.any():
        raise DataError(
            f"{path} must hold labels from {first} to {last}, got "
            f"{labels[wrong][0]:g}; download it again"
        )
    # Written so that a NaN is wrong.
    wrong = ~((x >= lowest - TOLERANCE) & (x <= 1 + TOLERANCE))
    if wrong.any():
        raise DataError(
            f"{path} must hold values from {lowest} to 1, got {x[wrong][0]:g}; "
            "download it again"
        )
