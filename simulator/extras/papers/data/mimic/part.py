"""MIMIC-III, death in hospital: statistics of each stay, or hourly sequences."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64, Int

from .....files.reading import files, table
from .....files.reading.columns import TextColumns
from .....files.reading.published import Published, PublishedFile, missing
from .....parts.errors import DataError
from .....problem.data.base import Dataset
from .....problem.data.parts import Data, Scale
from .....problem.data.split import Samples, finished
from .. import clinical
from . import features

TRAIN = ("train/listfile.csv", "train_listfile.csv", "val_listfile.csv")
TEST = ("test/listfile.csv", "test_listfile.csv")
"""Lists of stays: one in the folder of the half, or those that it is divided into."""
ROOT = "in-hospital-mortality"
FOLDERS = ("inhospitalmortality",)
HEADER = ("stay", "y_true")
"""Header of this task's lists; those of the benchmark's other tasks are longer."""
NAME = re.compile(r"^(?:(?:train|val|test)_)?listfile\.csv$")
HEAD = 64
"""Bytes that hold a list's header."""
HALVES = ("train", "test")
PUBLISHED = Published(
    origin="physionet.org/content/mimiciii (Johnson et al., 2016), by the scripts of "
    "Harutyunyan et al. (2019)",
    licence="PhysioNet Credentialed Health Data License 1.5.0: not to be shared",
    files=(
        PublishedFile("in-hospital-mortality/train/listfile.csv"),
        PublishedFile("in-hospital-mortality/test/listfile.csv"),
    ),
    by_hand="the data are credentialed (vafl/physionet_lstm asks the same of open "
    "data): apply at physionet.org/content/mimiciii (a course and a signed agreement), "
    "then make the folder in-hospital-mortality by the scripts of "
    "github.com/YerevaNN/mimic3-benchmarks",
)


class Mimic(Data):
    """MIMIC-III, death in hospital after the first 48 hours.

    Of the statistics, columns 42 v to 42 v + 41 are those of variable v, of 17. The
    hours have the 17 variables as views.
    """

    kind: Literal["mimic"] = "mimic"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "standard"
    features: Literal["statistics", "hourly"] = "statistics"
    """`statistics`: 714 statistics of 17 variables; `hourly`: 48 hours of 34 features,
    hour after hour."""

    def make(self) -> Dataset:
        """Returns 714 statistics of 17 variables, class 1 for a death in hospital.

        `hourly`: for each hour the means of the 17 variables, carried forward where
        there are none, before the first one the mean of the training rows' hours, then
        17 masks (1: measured in this hour). `unit` and `standard` scale a feature
        equally in all hours.

        The training rows are the benchmark's training and validation stays, 17,903, the
        test rows its 3,236 test stays. A statistic that a stay lacks, because the
        variable was never measured in it, is the mean of the training rows that have
        it, its count too; 0 where none has. Nothing is written to the cache: the data
        are credentialed.

        Source: Johnson et al., MIMIC-III (2016); Harutyunyan et al., Multitask learning
            and benchmarking with clinical time series data (2019).
        """
        root = _find()
        if root is None or _absent(root):
            absent = _absent(root) if root else (TRAIN[0], TEST[0])
            raise missing("mimic", PUBLISHED, [f"{ROOT}/{name}" for name in absent])
        hours = self.features == "hourly"
        # Both lists first: they are short, and a mistake in them is found at once.
        classes = _classes(root, TRAIN), _classes(root, TEST)
        read = features.hourly if hours else features.statistics
        train = _read(root / "train", classes[0], read)
        test = _read(root / "test", classes[1], read)
        usual = clinical.typical(train[0])
        whole = features.sequences if hours else clinical.imputed
        return finished(
            self,
            "mimic",
            (whole(train[0], usual), train[1]),
            (whole(test[0], usual), test[1]),
            num_classes=2,
            columns=features.HOURLY if hours else features.STATISTICS,
            views=features.VIEWS if hours else (),
            frames=clinical.HOURS if hours else 1,
        )

    def located_files(self) -> list[Path]:
        root = _find()
        if root is None:
            return []
        found = []
        for half, names in zip(HALVES, (TRAIN, TEST), strict=True):
            found += [root / name for name in names]
            found += [root / half / stay for stay in _classes(root, names)]
        return [path for path in found if path.is_file()]


def _find() -> Path | None:
    for path in files.candidates(FOLDERS, NAME):
        if not NAME.search(path.name):
            continue
        start = files.head(path, HEAD).decode("utf-8-sig", "replace").splitlines()
        ours = start and tuple(start[0].strip().split(",")) == HEADER
        if ours or files.folder_of(path, FOLDERS):
            inner = path.parent.name in HALVES
            return path.parent.parent if inner else path.parent
    return None


def _absent(root: Path) -> list[str]:
    return [
        names[0]
        for names in (TRAIN, TEST)
        if not any((root / name).is_file() for name in names[:2])
    ]


def _classes(root: Path, names: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in (root / name for name in names):
        if not path.is_file():
            continue
        cells = TextColumns(path)
        if cells.names != HEADER:
            raise DataError(
                f"{path} must have the header {','.join(HEADER)}, got "
                f"{','.join(cells.names)}; make it again by the benchmark's scripts"
            )
        labels = cells.texts(HEADER[1])
        stays = cells.texts(HEADER[0])
        for stay, label, line in zip(stays, labels, cells.lines, strict=True):
            if label not in ("0", "1") or not stay or Path(stay).name != stay:
                raise DataError(
                    f"{path} must hold a file's name and 0 or 1, got {stay!r} and "
                    f"{label!r} in line {line}; make it again"
                )
            if found.setdefault(stay, int(label)) != int(label):
                raise DataError(
                    f"{path} must have the class {found[stay]} for {stay}, as "
                    f"elsewhere, got {label} in line {line}; make it again"
                )
    return found


def _read(
    folder: Path, classes: dict[str, int], numbers: Callable[..., np.ndarray]
) -> Samples:
    x = []
    for stay in classes:
        if not (folder / stay).is_file():
            raise DataError(
                f"{folder / stay} is missing, which a list of {folder.parent} names; "
                "put it there, or make the folder again by the benchmark's scripts"
            )
        x.append(numbers(*_parse(folder / stay)))
    y: Int[np.ndarray, " N"] = np.array(list(classes.values()), np.int32)
    return np.stack(x), y


def _parse(path: Path) -> tuple[Float64[np.ndarray, " T"], Float64[np.ndarray, "T 17"]]:
    cells = TextColumns(path)
    names = {name.lower(): name for name in cells.names}
    for name in ("Hours", *features.VARIABLES):
        if name.lower() not in names:
            raise DataError(
                f"{path} must have the column {name!r}, got "
                f"{', '.join(cells.names)}; make it again by the benchmark's scripts"
            )
    hours = cells.numbers(names["hours"])
    outside = ~((hours > -1e-6) & (hours < clinical.HOURS + 1e-6))
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"column 'Hours' of {path} must be from 0 to {clinical.HOURS}, got "
            f"{hours[row]:g} in line {cells.lines[row]}; make it again by the "
            "benchmark's scripts"
        )
    values = np.stack(
        [
            _measurements(cells, names[variable.lower()], variable)
            for variable in features.VARIABLES
        ],
        axis=1,
    )
    return hours, values


def _measurements(
    cells: TextColumns, name: str, variable: str
) -> Float64[np.ndarray, " T"]:
    categorical = variable in features.CATEGORICAL
    number = features.category if categorical else table.number
    found = np.full(len(cells.rows), np.nan)
    for row, cell in enumerate(cells.texts(name)):
        if not cell:
            continue
        found[row] = number(cell)
        # Written so that a NaN is wrong.
        if not abs(found[row]) <= table.FLOAT32_MAX:
            raise DataError(
                f"column {name!r} of {cells.path} must hold numbers"
                f"{', known texts' if categorical else ''} or nothing, got {cell!r} in "
                f"line {cells.lines[row]}; correct or remove it"
            )
    return found
