"""Speech features of Parkinson's disease, divided by subject."""

import re
from pathlib import Path

import numpy as np

from simulator.config.errors import DataError
from simulator.problems.data.base import Dataset
from simulator.problems.data.dividing import divided
from simulator.problems.data.parkinson_standin import parkinson_standin
from simulator.problems.data.parts import Parkinson
from simulator.storage import files, table

FILE = "pd_speech_features.csv"
FOLDERS = ("parkinson", "parkinsons", "parkinsonsdisease")
"""Plain names of folders in which the file may have any name."""
HEAD = 65_536
"""Bytes that hold both header rows."""


def _files(config: Parkinson) -> list[Path]:
    path = None if config.source == "standin" else find()
    return [] if path is None else [path]


@files.finding(_files)
def parkinson(config: Parkinson) -> Dataset:
    """Returns UCI 470: gender and 752 speech features, class 1 for a patient.

    No subject has recordings in both halves. The exact duplicate row of the set is
    kept.

    Raises:
        DataError: a file that is demanded and missing, or damaged.
        ScenarioError: too high a limit or test fraction.

    Source: UCI 470, Parkinson's Disease Classification (Sakar et al., 2018).
    """
    found = _files(config)
    if found:
        return _load(config, found[0])
    if config.source == "csv":
        raise files.missing("parkinson", [FILE], "csv")
    return parkinson_standin(config)


def find() -> Path | None:
    """Returns the file of the set in the data folder: by its header, else its name."""
    paths = files.candidates(FOLDERS, re.compile(re.escape(FILE)))
    named = [path for path in paths if path.name in (FILE, f"{FILE}.gz")]
    headed = [path for path in paths if ".csv" in path.suffixes and _is_it(path)]
    return next(iter(headed + named), None)


def _is_it(path: Path) -> bool:
    """Says whether a file has the second header row of the set."""
    lines = files.head(path, HEAD).decode("utf-8-sig", "replace").splitlines()
    if len(lines) < 2:
        return False
    columns = [name.strip().strip('"') for name in lines[1].split(",")]
    return columns[:2] == ["id", "gender"] and columns[-1] == "class"


def _load(config: Parkinson, path: Path) -> Dataset:
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
    )
