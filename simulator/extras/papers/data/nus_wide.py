"""NUS-WIDE: features of images and their tags, rows with one of two concepts."""

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float32, Int

from ....files.reading import files, table
from ....files.reading.published import Published, PublishedFile
from ....parts.errors import DataError
from ....problem.data import base
from ....problem.data.base import Dataset
from ....problem.data.parts import FileData, FileSet, Roles, Scale
from ....problem.data.split import Samples, finished

FEATURES = {"CH": 64, "CM55": 225, "CORR": 144, "EDH": 73, "WT": 128}
"""Number of columns of each kind of image feature, in the order of the columns."""
NUM_TAGS = 1_000
HALVES = ("Train", "Test")
NAME = re.compile(
    r"^((?:Train|Test)_(?:Normalized_(?:CH|CM55|CORR|EDH|WT)|Tags1k)\.dat"
    r"|Labels_[a-z]+_(?:Train|Test)\.txt)(?:\.gz)?$"
)
FOLDERS = ("nuswide",)
CONCEPTS = ("person", "animal")
"""Rows are kept that have exactly one of them; those with the first are class 1
(F-13)."""
PUBLISHED = Published(
    origin="NUS-WIDE of the National University of Singapore (Chua et al., 2009)",
    licence="for research; its page states the terms",
    files=tuple(
        PublishedFile(name)
        for half in HALVES
        for name in (
            *(f"{half}_Normalized_{kind}.dat" for kind in FEATURES),
            f"{half}_Tags1k.dat",
        )
    ),
    by_hand="download low-level features, tags and ground truth from the page of "
    "NUS-WIDE at lms.comp.nus.edu.sg, and unpack them; it publishes no checksums",
)


def _inputs(half: str) -> tuple[str, ...]:
    features = (f"{half}_Normalized_{kind}.dat" for kind in FEATURES)
    return (*features, f"{half}_Tags1k.dat")


def _labels(half: str) -> tuple[str, ...]:
    return tuple(f"Labels_{concept}_{half}.txt" for concept in CONCEPTS)


ROLES = tuple(
    name for names in (_inputs, _labels) for half in HALVES for name in names(half)
)


def identify(path: Path) -> str:
    """Returns the official name of a file, by its own name; "" for a stranger."""
    match = NAME.search(path.name)
    return match[1] if match else ""


class NusWide(FileData):
    """NUS-WIDE, features of images and tags, two concepts.

    Columns 0 to 633 are of the images, 634 to 1633 tags.
    """

    kind: Literal["nus_wide"] = "nus_wide"
    files: ClassVar[FileSet] = FileSet(
        "nus_wide", ROLES, PUBLISHED, FOLDERS, NAME, identify
    )
    scale: Scale = "standard"

    def make(self) -> Dataset:
        """Returns 634 image features and 1,000 tags, class 1 for the first concept.

        Of the 161,789 training and 107,859 test rows those are kept that have exactly
        one of the concepts person and animal.

        Source: Chua, Tang, Hong, Li, Luo and Zheng, NUS-WIDE (2009); concepts: F-13.
        """
        found = self.files.complete()
        train, test = (_half(found, half) for half in HALVES)
        return finished(
            self,
            "nus_wide",
            train,
            test,
            num_classes=2,
            columns=tuple(
                column
                for kind, width in FEATURES.items()
                for column in base.counted(f"image_{kind}", width)
            )
            + base.counted("tag", NUM_TAGS),
        )


def _half(found: Roles, half: str) -> Samples:
    paths = [found[name] for name in _labels(half)]
    classes = [_parse_labels(path) for path in paths]
    for path, label in zip(paths, classes, strict=True):
        if len(label) != len(classes[0]):
            raise DataError(
                f"{path} must have {len(classes[0])} rows as {paths[0].name}, got "
                f"{len(label)}; download it again"
            )
    kept = np.sum(classes, axis=0) == 1
    y = classes[0][kept]
    x = np.empty((len(y), sum(FEATURES.values()) + NUM_TAGS), np.float32)
    start = 0
    widths = (*FEATURES.values(), NUM_TAGS)
    for name, width in zip(_inputs(half), widths, strict=True):
        x[:, start : start + width] = _parse(found[name], kept, width)
        start += width
    return x, y


def _parse_labels(path: Path) -> Int[np.ndarray, " N"]:
    cells = files.read(path).split()
    wrong = next((cell for cell in cells if cell not in (b"0", b"1")), None)
    if wrong is not None or not cells:
        shown = "nothing" if wrong is None else repr(wrong.decode("utf-8", "replace"))
        raise DataError(
            f"{path} must hold a 0 or 1 for each row, got {shown}; download it again"
        )
    return np.array(cells, np.int32)


def _parse(
    path: Path, kept: Bool[np.ndarray, " N"], width: int
) -> Float32[np.ndarray, "kept width"]:
    """Returns the kept rows of a file whose numbers are separated by any blanks.

    Only they are parsed, line by line: the largest file has 160 million numbers.
    """
    found = np.empty((kept.sum(), width), np.float32)
    row = num_rows = 0
    with _opened(path) as lines:
        for number, line in enumerate(lines):
            if not line.strip():
                continue
            num_rows += 1
            if num_rows > kept.size or not kept[num_rows - 1]:
                continue
            cells = line.split()
            if len(cells) != width:
                raise DataError(
                    f"{path} must have {width} numbers in every row, got {len(cells)} "
                    f"in line {number + 1}; download it again"
                )
            found[row] = [table.number(cell) for cell in cells]
            if not table.representable(found[row]).all():
                wrong = cells[int((~table.representable(found[row])).argmax())]
                raise DataError(
                    f"{path} must hold finite numbers, got {wrong!r} in line "
                    f"{number + 1}; download it again"
                )
            row += 1
    if num_rows != kept.size:
        raise DataError(
            f"{path} must have {kept.size} rows as its labels, got {num_rows}; "
            "download it again"
        )
    return found


@contextmanager
def _opened(path: Path) -> Iterator[Iterator[str]]:
    try:
        with path.open("rb") as raw:
            zipped = raw.read(len(files.GZIP)) == files.GZIP
        # Bytes that are no text become no number, which is reported with its line.
        with (
            gzip.open(path, "rt", encoding="ascii", errors="replace")
            if zipped
            else path.open(encoding="ascii", errors="replace")
        ) as lines:
            yield lines
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} must be a readable file of text, got: {error}; download it again"
        ) from error
