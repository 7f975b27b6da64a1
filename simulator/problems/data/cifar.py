"""CIFAR-10 from the files of its binary version, or of its Python version."""

import re
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from simulator.config.errors import DataError
from simulator.problems.data import cifar_pickled, names
from simulator.problems.data.base import Dataset
from simulator.problems.data.cifar_standin import cifar10_standin
from simulator.problems.data.dividing import finished
from simulator.problems.data.parts import Cifar10
from simulator.storage import files

TRAIN = tuple(f"data_batch_{batch}.bin" for batch in range(1, 6))
TEST = "test_batch.bin"
PYTHON = tuple(name.removesuffix(".bin") for name in (*TRAIN, TEST))
"""The same batches in the Python version."""
NAME = re.compile(r"((?:data_batch_[1-5]|test_batch)(?:\.bin)?)(?:\.gz)?")
FOLDERS = ("cifar10", "cifar10batchesbin", "cifar10batchespy")
"""Plain names of folders that are preferred to others."""
PIXELS = 3 * 32 * 32
RECORD = 1 + PIXELS
"""Bytes of a record: the label, then the red, green and blue planes row by row."""


VERSIONS = {"binary": (*TRAIN, TEST), "python": PYTHON}


def _read(config: Cifar10) -> tuple[str, dict[str, Path]]:
    """Returns which version is read, "" for the stand-in, and what lies there."""
    if config.source == "standin":
        return "", {}
    found = find()
    if config.source != "auto":
        return config.source, found
    whole = (v for v, six in VERSIONS.items() if found.keys() >= {*six})
    return next(whole, ""), found


def _files(config: Cifar10) -> list[Path]:
    version, found = _read(config)
    return [found[name] for name in VERSIONS.get(version, ()) if name in found]


@files.finding(_files)
def cifar10(config: Cifar10) -> Dataset:
    """Returns CIFAR-10 from its binary files, from its pickles, or its stand-in.

    Columns are those of the files: all red pixels, then the green, then the blue ones.
    Of the pickles no code is executed.

    Raises:
        DataError: files that are demanded and missing, or damaged.
        ScenarioError: too high a limit.
    """
    version, found = _read(config)
    if not version:
        return cifar10_standin(config)
    absent = [name for name in VERSIONS[version] if name not in found]
    if absent:
        archive = f"cifar-10-{version}.tar.gz"
        raise files.missing("cifar10", absent, version, f"; all six are in {archive}")
    read = parse if version == "binary" else cifar_pickled.parse
    *batches, test = [read(found[name]) for name in VERSIONS[version]]
    return finished(
        config,
        "cifar10",
        (
            np.concatenate([x for x, _ in batches]),
            np.concatenate([y for _, y in batches]),
        ),
        test,
        num_classes=10,
        columns=names.pixels(32, 32, names.RGB),
        largest=255.0,
    )


def find() -> dict[str, Path]:
    """Returns the batches that lie in the data folder, by their official name.

    A batch has nothing but its name to say which it is.
    """
    found: dict[str, Path] = {}
    for path in files.candidates(FOLDERS, NAME):
        match = NAME.fullmatch(path.name)
        if match:
            found.setdefault(match[1], path)
    return found


def parse(path: Path) -> tuple[UInt8[np.ndarray, "N P"], UInt8[np.ndarray, " N"]]:
    """Returns the images and labels of a batch.

    Raises:
        DataError: no whole number of records, or a label above 9.

    Source: the CIFAR-10 page, binary version.
    """
    content = files.read(path)
    if not content or len(content) % RECORD:
        raise DataError(
            f"{path} must hold records of {RECORD} bytes, got {len(content)} bytes; "
            "unpack it again"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD)
    x, y = records[:, 1:], records[:, 0]
    if y.max() > 9:
        raise DataError(
            f"{path} must hold labels from 0 to 9, got {y.max()}; unpack it again"
        )
    return x, y
