"""Speech features of Parkinson's disease, divided by subject."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from ....config.errors import DataError
from ....data.base import Dataset
from ....data.file_set import FileSet, Roles
from ....data.groups import grouping
from ....data.parts import Data
from ....data.split import divided
from ....storage import files, table
from ....storage.published import Published, PublishedFile

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


def find() -> Roles:
    """Returns the file of the set in the data folder: by its header, else its name."""
    paths = files.candidates(FOLDERS, re.compile(re.escape(FILE)))
    named = [path for path in paths if path.name in (FILE, f"{FILE}.gz")]
    headed = [path for path in paths if ".csv" in path.suffixes and _is_it(path)]
    first = next(iter(headed + named), None)
    return {} if first is None else {FILE: first}


def _is_it(path: Path) -> bool:
    """Says whether a file has the second header row of the set."""
    lines = files.head(path, HEAD).decode("utf-8-sig", "replace").splitlines()
    if len(lines) < 2:
        return False
    columns = [name.strip().strip('"') for name in lines[1].split(",")]
    return columns[:2] == ["id", "gender"] and columns[-1] == "class"


FILES = FileSet("parkinson", (FILE,), find=find, published=PUBLISHED)


class Parkinson(Data):
    """UCI 470, speech features of Parkinson's disease."""

    kind: Literal["parkinson"] = "parkinson"
    published: ClassVar[Published | None] = PUBLISHED

    def make(self) -> Dataset:
        """Returns UCI 470: gender and 752 speech features, class 1 for a patient.

        No subject has recordings in both halves. The exact duplicate row of the set is
        kept.

        Source: UCI 470, Parkinson's Disease Classification (Sakar et al., 2018).
        """
        return _load(self, FILES.complete()[FILE])

    def located_files(self) -> list[Path]:
        return FILES.paths()


def _load(config: Data, path: Path) -> Dataset:
    """Returns the set from its file."""
    cells = table.read(path, header=1)
    for name in ("id", "gender", "class"):
        if name not in cells.columns:
            raise DataError(
                f"{path} must have the column {name!r} in its second row, got "
                f"{len(cells.columns)} others; download it again"
            )
    columns = tuple(name for name in cells.columns if name not in ("id", "class"))
    y = table.numbers(cells, ("class",))[:, 0]
    if not np.isin(y, (0, 1)).all():
        raise DataError(
            f"column 'class' of {path} must hold 0 and 1 only, got "
            f"{y[~np.isin(y, (0, 1))][0]:g}; download it again"
        )
    return divided(
        config,
        "parkinson",
        (table.numbers(cells, columns), y),
        num_classes=2,
        columns=columns,
        groups=np.array(table.column(cells, "id")),
        groupings=(grouping("subject", table.values(cells, "id")),),
    )
