"""Speech features of Parkinson's disease, divided by subject."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from ....files.reading import files
from ....files.reading.columns import TextColumns
from ....files.reading.published import Published, PublishedFile
from ....parts.errors import DataError
from ....problem.data.base import Dataset
from ....problem.data.groups import grouping
from ....problem.data.parts import Data, FileData, FileSet
from ....problem.data.split import divided

FILE = "pd_speech_features.csv"
FOLDERS = ("parkinson", "parkinsons", "parkinsonsdisease")
"""Plain names of folders in which the file may have any name."""
HEAD = 65_536
"""Bytes that hold both header rows."""
PUBLISHED = Published(
    origin="UCI 470, Parkinson's Disease Classification (Sakar et al., 2018)",
    licence="CC BY 4.0",
    files=(PublishedFile("pd_speech_features.csv"),),
    by_hand="download the zip of archive.ics.uci.edu/dataset/470 and unpack it; UCI "
    "publishes no checksum",
)


def identify(path: Path) -> str:
    """Returns the official name of a file, by its header or its name, "" for others."""
    if path.name in (FILE, f"{FILE}.gz"):
        return FILE
    if ".csv" not in path.suffixes:
        return ""
    lines = files.head(path, HEAD).decode("utf-8-sig", "replace").splitlines()
    header = lines[1].split(",") if len(lines) > 1 else []
    columns = [name.strip().strip('"') for name in header]
    ours = columns[:2] == ["id", "gender"] and columns[-1] == "class"
    return FILE if ours else ""


NAME = re.compile(re.escape(FILE))


class Parkinson(FileData):
    """UCI 470, speech features of Parkinson's disease."""

    kind: Literal["parkinson"] = "parkinson"
    files: ClassVar[FileSet] = FileSet(
        "parkinson", (FILE,), PUBLISHED, FOLDERS, NAME, identify
    )

    def make(self) -> Dataset:
        """Returns UCI 470: gender and 752 speech features, class 1 for a patient.

        No subject has recordings in both halves. The exact duplicate row of the set is
        kept.

        Source: UCI 470, Parkinson's Disease Classification (Sakar et al., 2018).
        """
        return _load(self, self.files.complete()[FILE])


def _load(config: Data, path: Path) -> Dataset:
    cells = TextColumns(path, header=1)
    for name in ("id", "gender", "class"):
        if name not in cells.names:
            raise DataError(
                f"{path} must have the column {name!r} in its second row, got "
                f"{len(cells.names)} others; download it again"
            )
    columns = tuple(name for name in cells.names if name not in ("id", "class"))
    y = cells.numbers("class")
    if not np.isin(y, (0, 1)).all():
        raise DataError(
            f"column 'class' of {path} must hold 0 and 1 only, got "
            f"{y[~np.isin(y, (0, 1))][0]:g}; download it again"
        )
    return divided(
        config,
        "parkinson",
        (cells.matrix(columns), y),
        num_classes=2,
        columns=columns,
        groups=np.array(cells.texts("id")),
        groupings=(grouping("subject", cells.values("id", "a subject")),),
    )
