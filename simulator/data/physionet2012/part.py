"""PhysioNet 2012, death in hospital: statistics of each stay, or hourly sequences."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float32, Float64

from ...storage import files
from ...storage.cache import Arrays, cached_of
from ...storage.packed import members
from ...storage.published import Published
from ..base import Dataset
from ..file_set import FileSet, by_role
from ..parts import Data, Scale
from ..split import finished
from . import hourly as hours
from . import standin
from . import statistics as summary
from .record import (
    ALL,
    OUTCOMES_A,
    OUTCOMES_B,
    PUBLISHED,
    SET_A,
    SET_B,
)
from .stays import (
    HOURS,
    STAY,
    VARIABLES,
    Stays,
    parse_outcomes,
    parse_stays,
)

NAME = re.compile(
    r"^(?:(set-[ab])\.(?:tar\.gz|tgz|tar|zip)|(Outcomes-[ab]\.txt)"
    r"|(set-a-set-b-outcomes)\.(?:tar\.gz|tgz|tar|zip))$"
)
FOLDERS = ("physionet2012", "challenge2012", "physionetchallenge2012")
"""Plain names of folders that are preferred to others."""
HALVES = ("a", "b")
ICUS = 4
"""Kinds of intensive care units: coronary, cardiac surgery, medical, surgical."""
ONCE = ("age", "gender", "height", *(f"icu_type_{kind}" for kind in range(1, ICUS + 1)))
"""What does not change during a stay."""
STATIC = "static"
"""View of what does not change."""


def identify(path: Path) -> str:
    """Returns the official name of a file, by its own name; "" for a stranger."""
    match = NAME.search(path.name)
    if not match:
        return ""
    one, outcomes, _ = match.groups()
    return f"{one}.tar.gz" if one else outcomes or ALL


FILES = FileSet(
    "physionet2012",
    {"official": (SET_A, SET_B, OUTCOMES_A, OUTCOMES_B), "archive": (ALL,)},
    find=lambda: by_role(FOLDERS, NAME, identify),
    remark=lambda _: "; stalesim data get physionet2012 downloads them",
    published=PUBLISHED,
)


class PhysioNet2012(Data):
    """PhysioNet 2012, death in hospital after 48 hours, else its stand-in.

    The views are the 37 variables, in
    the order of the challenge's page, and `static`, which comes last.
    """

    kind: Literal["physionet2012"] = "physionet2012"
    published: ClassVar[Published | None] = PUBLISHED
    source: Literal["auto", "official", "archive", "standin"] = "auto"
    """Files that are read, by their form; `auto` takes what is there."""
    scale: Scale = "standard"
    features: Literal["statistics", "hourly"] = "statistics"
    """`statistics`: 1,554 statistics of 37 variables and 7 columns of what does not
    change; `hourly`: 48 hours of 81 features, hour after hour."""

    def make(self) -> Dataset:
        """Returns set-a for training and set-b for testing, class 1 for a death.

        Both have 4,000 stays. As in the challenge, the first 48 hours of a stay are
        known. Values of -1 are unknown; no other value is cleaned. What does not change
        is the age, the gender, the height, and a column of zeros and ones for each of
        four kinds of intensive care units; the weight counts as measured. What is
        unknown of a stay is the mean of the training stays that have it, 0 where none
        has.

        `statistics`: minimum, maximum, mean, standard deviation, skewness and count of
        each variable in seven sub-periods, as in MIMIC-III; a count is 0, not unknown,
        where there are no measurements.

        `hourly`: of each hour the 37 means, carried forward where there are none, then
        37 masks (1: measured in this hour), then the 7 columns of what does not change,
        the same in all hours. `unit` and `standard` scale a feature alike in all hours.

        Parsing the files takes about 4 s and is cached (23 MB); `statistics` then takes
        about 2 s, `hourly` 1 s, and the process up to 0.7 GB of memory.

        Source: Silva, Moody, Scott, Celi and Mark, Predicting in-hospital mortality of
            ICU patients: the PhysioNet/Computing in Cardiology Challenge 2012.
        """
        chosen = FILES.complete(self.source)
        name = FILES.called(chosen) if chosen.form else "physionet2012-standin"
        train, test = _stays(chosen.paths) if chosen.form else standin.stays()
        y = train.died.astype(np.int32), test.died.astype(np.int32)
        build = _statistics if self.features == "statistics" else _hourly
        x_train, x_test, columns, views = build(train, test)
        return finished(
            self,
            name,
            (x_train, y[0]),
            (x_test, y[1]),
            num_classes=2,
            columns=columns,
            views=views,
            frames=HOURS if self.features == "hourly" else 1,
        )

    def located_files(self) -> list[Path]:
        """Returns the files that are read."""
        return FILES.paths(self.source)


Made = tuple[np.ndarray, np.ndarray, tuple[str, ...], tuple[str, ...]]
"""Features of training and test rows, names of the columns, views of the columns."""


def _stays(paths: dict[str, Path]) -> tuple[Stays, Stays]:
    """Returns the stays of both sets, from the cache where they were parsed before.

    Raises:
        DataError: A file is damaged, or lacks a stay.
    """
    arrays = cached_of("physionet2012-1", paths.values(), lambda: _parse(paths))
    half_a, half_b = (
        Stays(*(arrays[f"{field}_{half}"] for field in Stays._fields))
        for half in HALVES
    )
    return half_a, half_b


def _parse(paths: dict[str, Path]) -> Arrays:
    """Returns the arrays of the stays of both sets.

    Raises:
        DataError: A file is damaged, or lacks a stay.
    """
    found: Arrays = {}
    packed = list(members(paths[ALL])) if ALL in paths else None
    for half, archive, listed in zip(
        HALVES, (SET_A, SET_B), (OUTCOMES_A, OUTCOMES_B), strict=True
    ):
        if packed is None:
            outcomes, path = files.read(paths[listed]), paths[archive]
            contents = members(path)
        else:
            path, contents = paths[ALL], packed
            named = (text for name, text in packed if Path(name).name == listed)
            outcomes = next(named, b"")
        stays = [
            (int(match[2]), content)
            for name, content in contents
            if (match := STAY.search(name)) and match[1] == half
        ]
        parsed = parse_stays(path, stays, parse_outcomes(path, outcomes))
        found |= {f"{name}_{half}": part for name, part in parsed._asdict().items()}
    return found


def _statistics(train: Stays, test: Stays) -> Made:
    """Returns the table of statistics of each stay."""
    once = _once(train, test)
    x = [summary.statistics(train), summary.statistics(test)]
    typical = _means(x[0])
    table = [
        np.concatenate([np.where(np.isnan(of), typical, of), static], axis=1)
        for of, static in zip(x, once, strict=True)
    ]
    width = len(summary.COLUMNS) // len(VARIABLES)
    views = [name.lower() for name in VARIABLES for _ in range(width)]
    columns = (*summary.COLUMNS, *ONCE)
    return table[0], table[1], columns, (*views, *[STATIC] * len(ONCE))


def _hourly(train: Stays, test: Stays) -> Made:
    """Returns the hours of each stay, one after the other."""
    means = [hours.hourly(train), hours.hourly(test)]
    typical = _means(means[0].reshape(-1, len(VARIABLES)))
    table = []
    for of, static in zip(means, _once(train, test), strict=True):
        constant = np.broadcast_to(static[:, None], (*of.shape[:2], static.shape[1]))
        parts = (hours.filled(of, typical), hours.measured(of), constant)
        table.append(
            np.concatenate(parts, axis=2, dtype=np.float32).reshape(len(of), -1)
        )
    variables = [name.lower() for name in VARIABLES]
    features = (*variables, *(f"{name}_measured" for name in variables), *ONCE)
    columns = tuple(f"{name}_hour_{h}" for h in range(HOURS) for name in features)
    views = (*variables, *variables, *[STATIC] * len(ONCE)) * HOURS
    return table[0], table[1], columns, views


def _once(
    train: Stays, test: Stays
) -> tuple[Float32[np.ndarray, "N 7"], Float32[np.ndarray, "N_test 7"]]:
    """Returns what does not change, with means of the training stays for unknowns."""
    typical = _means(train.descriptors[:, :3].astype(np.float64))
    found = []
    for stays in (train, test):
        known = np.where(
            np.isnan(stays.descriptors[:, :3]), typical, stays.descriptors[:, :3]
        )
        icu = stays.descriptors[:, 3:] == np.arange(1, ICUS + 1)
        found.append(np.concatenate([known, icu], axis=1, dtype=np.float32))
    return found[0], found[1]


def _means(x: Float64[np.ndarray, "N P"] | Float32[np.ndarray, "N P"]) -> np.ndarray:
    """Returns the mean of the known values of each column, 0 where none is known."""
    known = ~np.isnan(x)
    total = np.where(known, x, 0.0).sum(axis=0, dtype=np.float64)
    return total / np.maximum(known.sum(axis=0), 1)
