"""NUS-WIDE: features of images and their tags, rows with one of the chosen concepts."""

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Int

from simulator.config.errors import DataError, ScenarioError
from simulator.problems.data import names
from simulator.problems.data.base import Dataset
from simulator.problems.data.dividing import finished
from simulator.problems.data.nus_wide_standin import nus_wide_standin
from simulator.problems.data.parts import NusWide
from simulator.problems.data.selecting import Samples
from simulator.storage import files, table

FEATURES = {"CH": 64, "CM55": 225, "CORR": 144, "EDH": 73, "WT": 128}
"""Columns of each kind of image feature, in the order in which they stand here."""
NUM_TAGS = 1_000
HALVES = ("Train", "Test")
NAME = re.compile(
    r"^((?:Train|Test)_(?:Normalized_(?:CH|CM55|CORR|EDH|WT)|Tags1k)\.dat"
    r"|Labels_[a-z]+_(?:Train|Test)\.txt)(?:\.gz)?$"
)
FOLDERS = ("nuswide",)


def _read(config: NusWide) -> dict[str, Path]:
    """Returns the files that are read, by their names; none for the stand-in.

    Of the chosen concepts' files those that are there, for one may be misspelt, which
    must not end in the stand-in.
    """
    found = {} if config.source == "standin" else find()
    inputs = [name for half in HALVES for name in _inputs(half)]
    if config.source != "dat" and not found.keys() >= {*inputs}:
        return {}
    labels = [name for half in HALVES for name in _labels(config, half)]
    return {name: found[name] for name in (*inputs, *labels) if name in found}


@files.finding(lambda config: [*_read(config).values()])
def nus_wide(config: NusWide) -> Dataset:
    """Returns 634 image features and 1,000 tags, class 1 for the first concept.

    Of the 161,789 training and 107,859 test rows those are kept that have exactly one
    of the chosen concepts.

    Raises:
        DataError: files that are demanded and missing, or damaged.
        ScenarioError: too high a limit, or concepts without rows.

    Source: Chua, Tang, Hong, Li, Luo and Zheng, NUS-WIDE (2009); concepts: F-13.
    """
    found = _read(config)
    if not found and config.source != "dat":
        return nus_wide_standin(config)
    wanted = [name for half in HALVES for name in _inputs(half)]
    wanted += [name for half in HALVES for name in _labels(config, half)]
    absent = [name for name in wanted if name not in found]
    if absent:
        raise files.missing("nus_wide", absent, "dat")
    train, test = (_half(config, found, half) for half in HALVES)
    chosen = config.concepts != NusWide.model_fields["concepts"].default
    return finished(
        config,
        f"nus_wide ({', '.join(config.concepts)})" if chosen else "nus_wide",
        train,
        test,
        num_classes=2,
        columns=tuple(
            column
            for kind, width in FEATURES.items()
            for column in names.counted(f"image_{kind}", width)
        )
        + names.counted("tag", NUM_TAGS),
    )


def find() -> dict[str, Path]:
    """Returns the files that lie in the data folder, by their official name.

    A file has nothing but its name to say which it is.
    """
    found: dict[str, Path] = {}
    for path in files.candidates(FOLDERS, NAME):
        match = NAME.search(path.name)
        if match:
            found.setdefault(match[1], path)
    return found


def _inputs(half: str) -> list[str]:
    """Returns the names of the files of features and tags."""
    return [
        *(f"{half}_Normalized_{kind}.dat" for kind in FEATURES),
        f"{half}_Tags1k.dat",
    ]


def _labels(config: NusWide, half: str) -> list[str]:
    """Returns the names of the files of the chosen concepts."""
    return [f"Labels_{concept}_{half}.txt" for concept in config.concepts]


def _half(config: NusWide, found: dict[str, Path], half: str) -> Samples:
    """Returns the rows of one half that have exactly one concept."""
    paths = [found[name] for name in _labels(config, half)]
    labels = [parse_labels(path) for path in paths]
    for path, label in zip(paths, labels, strict=True):
        if len(label) != len(labels[0]):
            raise DataError(
                f"{path} must have {len(labels[0])} rows as {paths[0].name}, got "
                f"{len(label)}; download it again"
            )
    kept = np.sum(labels, axis=0) == 1
    y = labels[0][kept]
    if not y.any() or y.all():
        raise ScenarioError(
            "problem.data.concepts must leave rows with and without the first, got "
            f"{y.sum()} and {len(y) - y.sum()} for {', '.join(config.concepts)} in "
            f"{paths[0].parent}; choose others"
        )
    x = np.empty((len(y), sum(FEATURES.values()) + NUM_TAGS), np.float32)
    start = 0
    widths = (*FEATURES.values(), NUM_TAGS)
    for name, width in zip(_inputs(half), widths, strict=True):
        x[:, start : start + width] = parse(found[name], kept, width)
        start += width
    return x, y


def parse_labels(path: Path) -> Int[np.ndarray, " N"]:
    """Returns 0 or 1 for each row of a file of labels.

    Raises:
        DataError: anything else in it, or nothing.
    """
    cells = files.read(path).split()
    wrong = next((cell for cell in cells if cell not in (b"0", b"1")), None)
    if wrong is not None or not cells:
        shown = "nothing" if wrong is None else repr(wrong.decode("utf-8", "replace"))
        raise DataError(
            f"{path} must hold a 0 or 1 for each row, got {shown}; download it again"
        )
    return np.array(cells, np.int32)


def parse(
    path: Path, kept: Bool[np.ndarray, " N"], width: int
) -> Float32[np.ndarray, "kept width"]:
    """Returns the kept rows of a file whose numbers are separated by any blanks.

    Only they are parsed, line by line: the largest file has 160 million numbers.

    Args:
        path: of the file, gzipped or not.
        kept: says of each row whether it is wanted.
        width: numbers in a row.

    Raises:
        DataError: it cannot be read, or has other rows or columns, or no numbers.
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
    """Opens a file, gzipped or not, for reading line by line."""
    try:
        with path.open("rb") as raw:
            zipped = raw.read(len(files.GZIP)) == files.GZIP
        # What is no text becomes no number, which is reported with its line.
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
