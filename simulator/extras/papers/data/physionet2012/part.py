"""PhysioNet 2012, death in hospital: statistics of each stay, or hourly sequences."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float32, Float64, Int64

from .....files.reading import files
from .....files.reading.archive import Arrays, cached_of, members
from .....files.reading.published import Published, PublishedFile
from .....problem.data.base import Dataset
from .....problem.data.parts import Data, FileSet, Scale
from .....problem.data.split import finished
from .. import clinical
from ..clinical import HOURS
from .stays import STAY, VARIABLES, parse_outcomes, parse_stays

SET_A, SET_B = "set-a.tar.gz", "set-b.tar.gz"
OUTCOMES_A, OUTCOMES_B = "Outcomes-a.txt", "Outcomes-b.txt"
NAME = re.compile(r"^(?:(set-[ab])\.(?:tar\.gz|tgz|tar|zip)|(Outcomes-[ab]\.txt))$")
FOLDERS = ("physionet2012", "challenge2012", "physionetchallenge2012")
"""Plain names of folders that are preferred to others."""
HALVES = ("a", "b")
ICUS = 4
"""Kinds of intensive care units: coronary, cardiac surgery, medical, surgical."""
ONCE = ("age", "gender", "height", *(f"icu_type_{kind}" for kind in range(1, ICUS + 1)))
"""Values that do not change during a stay."""
NAMES = tuple(name.lower() for name in VARIABLES)
STATIC = "static"
"""View of constant values."""
PAGE = "https://physionet.org/files/challenge-2012/1.0.0/"


def _file(name: str, size: int, sha256: str) -> PublishedFile:
    return PublishedFile(name, f"sha256:{sha256}", size, urls=(PAGE + name,))


PUBLISHED = Published(
    origin="physionet.org/content/challenge-2012/1.0.0 (Silva et al., 2012)",
    licence="ODC-By 1.0",
    files=(
        _file(
            SET_A,
            6_632_372,
            "8cb250f179cd0952b4b9ebcf8954b63d70383131670fac1cfee13deaa13ca920",
        ),
        _file(
            SET_B,
            6_652_690,
            "b1637a2a423a8e76f8f087896cfc5fdf28f88519e1f4e874fbda69b2a64dac30",
        ),
        _file(
            OUTCOMES_A,
            79_219,
            "2613ea60ccda29f87571a7d6b09ad130858a8ccd66325bd073365925026883c2",
        ),
        _file(
            OUTCOMES_B,
            79_149,
            "1305f29734da374a809483229a99f33a9230aa8d4fa74b1a2d6ad788136423d5",
        ),
    ),
)


def identify(path: Path) -> str:
    """Returns the official name of a file, by its own name; "" for a stranger."""
    match = NAME.search(path.name)
    if not match:
        return ""
    one, outcomes = match.groups()
    return f"{one}.tar.gz" if one else outcomes


FILES = FileSet(
    "physionet2012",
    (SET_A, SET_B, OUTCOMES_A, OUTCOMES_B),
    PUBLISHED,
    FOLDERS,
    NAME,
    identify,
)


class PhysioNet2012(Data):
    """PhysioNet 2012, death in hospital after 48 hours.

    The views are the 37 variables, in the order of the challenge's page, and `static`,
    which comes last.
    """

    kind: Literal["physionet2012"] = "physionet2012"
    published: ClassVar[Published | None] = PUBLISHED
    scale: Scale = "standard"
    features: Literal["statistics", "hourly"] = "statistics"
    """`statistics`: 1,554 statistics of 37 variables and 7 columns of constant values;
    `hourly`: 48 hours of 81 features, hour after hour."""

    def make(self) -> Dataset:
        """Returns set-a for training and set-b for testing, class 1 for a death.

        Both have 4,000 stays. As in the challenge, the first 48 hours of a stay are
        known. Values of -1 are unknown; no other value is cleaned. Constant values are
        the age, the gender, the height, and a column of zeros and ones for each of four
        kinds of intensive care units; the weight counts as measured. An unknown value
        of a stay is the mean of the training stays that have it, 0 where none has.

        `statistics`: minimum, maximum, mean, standard deviation, skewness and count of
        each variable in seven sub-periods, as in MIMIC-III; a count is 0, not unknown,
        where there are no measurements.

        `hourly`: for each hour the 37 means, carried forward where there are none, then
        37 masks (1: measured in this hour), then the 7 columns of constant values, the
        same in all hours. `unit` and `standard` scale a feature equally in all hours.

        Parsing the files takes about 4 s and is cached (23 MB); `statistics` then takes
        about 2 s, `hourly` 1 s, and the process up to 0.7 GB of memory.

        Source: Silva, Moody, Scott, Celi and Mark, Predicting in-hospital mortality of
            ICU patients: the PhysioNet/Computing in Cardiology Challenge 2012.
        """
        paths = FILES.complete()
        train, test = _stays(paths)
        y = train["died"].astype(np.int32), test["died"].astype(np.int32)
        build = _statistics if self.features == "statistics" else _hourly
        x_train, x_test, columns, views = build(train, test)
        return finished(
            self,
            FILES.called(paths),
            (x_train, y[0]),
            (x_test, y[1]),
            num_classes=2,
            columns=columns,
            views=views,
            frames=HOURS if self.features == "hourly" else 1,
        )

    def located_files(self) -> list[Path]:
        return FILES.paths()


Made = tuple[np.ndarray, np.ndarray, tuple[str, ...], tuple[str, ...]]
"""Features of training and test rows, names of the columns, views of the columns."""


def _stays(paths: dict[str, Path]) -> tuple[Arrays, Arrays]:
    arrays = cached_of("physionet2012-1", paths.values(), lambda: _parse(paths))
    half_a, half_b = (
        {name[:-2]: part for name, part in arrays.items() if name.endswith(half)}
        for half in HALVES
    )
    return half_a, half_b


def _parse(paths: dict[str, Path]) -> Arrays:
    found: Arrays = {}
    for half, archive, listed in zip(
        HALVES, (SET_A, SET_B), (OUTCOMES_A, OUTCOMES_B), strict=True
    ):
        path, outcomes = paths[archive], files.read(paths[listed])
        stays = [
            (int(match[2]), content)
            for name, content in members(path)
            if (match := STAY.search(name)) and match[1] == half
        ]
        parsed = parse_stays(path, stays, parse_outcomes(path, outcomes))
        found |= {f"{name}_{half}": part for name, part in parsed.items()}
    return found


def _statistics(train: Arrays, test: Arrays) -> Made:
    found = [_of_stays(train), _of_stays(test)]
    usual = clinical.typical(found[0])
    both = zip(found, _once(train, test), strict=True)
    table = [np.concatenate([clinical.imputed(x, usual), o], axis=1) for x, o in both]
    columns = (*clinical.columns(NAMES), *ONCE)
    views = [name for name in NAMES for _ in range(found[0].shape[1] // len(NAMES))]
    return table[0], table[1], columns, (*views, *[STATIC] * len(ONCE))


def _of_measurements(stays: Arrays) -> Int64[np.ndarray, " M"]:
    """Returns the number of the stay of each measurement."""
    counts = np.diff(stays["ends"], prepend=0)
    return np.repeat(np.arange(len(counts)), counts)


def _of_stays(stays: Arrays) -> Float64[np.ndarray, "N P"]:
    group = _of_measurements(stays) * len(VARIABLES) + stays["variable"]
    order = np.argsort(group, kind="stable")
    hours, values = (
        stays["minute"][order] / 60.0,
        stays["value"][order].astype(np.float64),
    )
    num = len(stays["ends"]) * len(VARIABLES)
    found = clinical.statistics(hours, values, group[order], num)
    return found.reshape(len(stays["ends"]), -1)


def _hourly(train: Arrays, test: Arrays) -> Made:
    means = [_hours(train), _hours(test)]
    usual = clinical.typical(means[0])
    table = []
    for of, static in zip(means, _once(train, test), strict=True):
        constant = np.broadcast_to(static[:, None], (*of.shape[:2], static.shape[1]))
        parts = (clinical.filled(of, usual), clinical.measured(of), constant)
        table.append(
            np.concatenate(parts, axis=2, dtype=np.float32).reshape(len(of), -1)
        )
    names = (*NAMES, *(f"{name}_measured" for name in NAMES), *ONCE)
    columns = tuple(f"{name}_hour_{h}" for h in range(HOURS) for name in names)
    views = (*NAMES, *NAMES, *[STATIC] * len(ONCE)) * HOURS
    return table[0], table[1], columns, views


def _hours(stays: Arrays) -> Float32[np.ndarray, "N 48 37"]:
    """Returns the mean of each variable in each hour, NaN where none was measured.

    Hour h holds the minutes 60 h to 60 h + 59; minute 2,880, the end of the second day,
    belongs to the last hour.
    """
    hour = np.minimum(stays["minute"] // 60, HOURS - 1).astype(np.int64)
    cell = (_of_measurements(stays) * HOURS + hour) * len(VARIABLES) + stays["variable"]
    num = len(stays["ends"]) * HOURS * len(VARIABLES)
    return clinical.means(stays["value"], cell, num).reshape(-1, HOURS, len(VARIABLES))


def _once(
    train: Arrays, test: Arrays
) -> tuple[Float32[np.ndarray, "N 7"], Float32[np.ndarray, "N_test 7"]]:
    """Returns what does not change, with means of the training stays for unknowns."""
    usual = clinical.typical(train["descriptors"][:, :3])
    found = []
    for stays in (train, test):
        known = clinical.imputed(stays["descriptors"][:, :3], usual)
        icu = stays["descriptors"][:, 3:] == np.arange(1, ICUS + 1)
        found.append(np.concatenate([known, icu], axis=1, dtype=np.float32))
    return found[0], found[1]
