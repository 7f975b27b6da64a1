"""UCI multiple features: handwritten digits, seen in six ways."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from ...config.errors import DataError
from ...storage import archive, files
from ...storage.published import Published
from ..base import Dataset
from ..classes import Samples
from ..file_set import Chosen, FileSet, by_role
from ..parts import Data, Scale
from .record import NPZ, PUBLISHED
from .standin import mfeat_standin
from .views import NUM_CLASSES, VIEWS, dataset

TEXTS = tuple(f"mfeat-{view}" for view in VIEWS)
"""Official names of the six files."""
NAME = re.compile("mfeat", re.IGNORECASE)
FOLDERS = ("mfeat", "multiplefeatures")
WIDTH = sum(VIEWS.values())


def identify(path: Path) -> str:
    """Returns the official name of a file, by its own name; "" for a stranger."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".txt")
    return name if name in (*TEXTS, NPZ) else ""


FILES = FileSet(
    "mfeat",
    {"text": TEXTS, "npz": (NPZ,)},
    find=lambda: by_role(FOLDERS, NAME, identify),
    published=PUBLISHED,
)


class Mfeat(Data):
    """UCI 72, 2,000 digits in six views of 649 columns, else its stand-in.

    The views, in the order of the columns: fou 76, fac 216, kar 64, pix 240, zer 47,
    mor 6. The partition `views` gives whole views to parties.
    """

    kind: Literal["mfeat"] = "mfeat"
    published: ClassVar[Published | None] = PUBLISHED
    source: Literal["auto", "text", "npz", "standin"] = "auto"
    """Files that are read, by their form; `auto` takes what is there."""
    scale: Scale = "standard"

    def make(self) -> Dataset:
        """Returns 2,000 digits of 649 columns in six views, 200 digits a class.

        There is no official division: a fraction `test_fraction` of the rows, drawn by
        `split_seed`, is for testing, and all are shuffled, because the files are sorted
        by digit.

        Source: UCI 72, Multiple Features (Duin, 1998).
        """
        chosen = FILES.complete(self.source)
        if not chosen.form:
            return mfeat_standin(self)
        return dataset(self, FILES.called(chosen), _samples(chosen))

    def located_files(self) -> list[Path]:
        """Returns the files that are read."""
        return FILES.paths(self.source)


def _samples(chosen: Chosen) -> Samples:
    """Returns features and digits from the files of a format."""
    if chosen.form == "npz":
        return _from_npz(chosen.paths[NPZ])
    widths = dict(zip(TEXTS, VIEWS.values(), strict=True))
    views = [_view(chosen.paths[name], widths[name]) for name in TEXTS]
    for name, view in zip(TEXTS, views, strict=True):
        if len(view) != len(views[0]):
            raise DataError(
                f"{chosen.paths[name]} must have the {len(views[0])} rows of "
                f"{TEXTS[0]}, got {len(view)}; download it again"
            )
    # The files have no labels: the same number of rows for each digit, from 0 to 9.
    each, rest = divmod(len(views[0]), NUM_CLASSES)
    if rest or not each:
        raise DataError(
            f"{chosen.paths[TEXTS[0]]} must have as many rows for each of the "
            f"{NUM_CLASSES} digits, got {len(views[0])} in all; download it again"
        )
    return np.concatenate(views, axis=1), np.repeat(np.arange(NUM_CLASSES), each)


def _view(path: Path, width: int) -> Float64[np.ndarray, "N P"]:
    """Returns the numbers of a view's file, a row a line, blanks between them."""
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


def _from_npz(path: Path) -> Samples:
    """Returns the arrays of the npz file."""
    try:
        arrays = archive.arrays(files.read(path))
        x, y = arrays["x"], arrays["y"]
    except (ValueError, KeyError) as error:
        raise DataError(
            f"{path} must be an npz file of the arrays x and y, got: "
            f"{' '.join(str(error).split())}; put the six files {TEXTS[0]}, ... in its "
            "place"
        ) from error
    fits = x.ndim == 2 and x.shape[1] == WIDTH and y.shape == x.shape[:1] and y.size
    if not fits or x.dtype.kind not in "iuf" or not np.isfinite(x).all():
        raise DataError(
            f"{path} must hold x of {WIDTH} finite columns and one y a row, got "
            f"{x.dtype} {x.shape} and {y.shape}; put the six files in its place"
        )
    if y.dtype.kind not in "iu" or not np.isin(y, np.arange(NUM_CLASSES)).all():
        raise DataError(
            f"y of {path} must hold digits from 0 to 9, got {y.dtype} of other "
            "values; put the six files in its place"
        )
    return x, y
