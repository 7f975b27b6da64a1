"""CIFAR-10 from the files of its binary version, or of its Python version."""

import re
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import UInt8

from simulator.config.errors import DataError
from simulator.problems.data import names
from simulator.problems.data.base import Dataset
from simulator.problems.data.cifar10 import pickled
from simulator.problems.data.cifar10.standin import cifar10_standin
from simulator.problems.data.file_set import FileSet, by_role
from simulator.problems.data.parts import Data
from simulator.problems.data.split import finished
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


def identify(path: Path) -> str:
    """Returns the official name of a batch, by its own name; "" for other files."""
    match = NAME.fullmatch(path.name)
    return match[1] if match else ""


FILES = FileSet(
    "cifar10",
    {"binary": (*TRAIN, TEST), "python": PYTHON},
    find=lambda: by_role(FOLDERS, NAME, identify),
    remark=lambda version: f"; all six are in cifar-10-{version}.tar.gz",
)


class Cifar10(Data):
    """CIFAR-10, binary version or else Python version, else its stand-in."""

    kind: Literal["cifar10"] = "cifar10"
    source: Literal["auto", "binary", "python", "standin"] = "auto"

    def make(self) -> Dataset:
        """Returns CIFAR-10 from its binary files, from its pickles, or its stand-in.

        Columns are those of the files: all red pixels, then the green, then the blue
        ones. No code in the pickles is executed.

        Raises:
            DataError: Files are demanded and missing, or damaged.
            ScenarioError: The limit is too high.
        """
        version, found = FILES.complete(self.source)
        if not version:
            return cifar10_standin(self)
        read = parse if version == "binary" else pickled.parse
        *batches, test = [read(path) for path in found.values()]
        return finished(
            self,
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

    def found_files(self) -> list[Path]:
        """Returns the batches that are read."""
        return FILES.paths(self.source)


def parse(path: Path) -> tuple[UInt8[np.ndarray, "N P"], UInt8[np.ndarray, " N"]]:
    """Returns the images and labels of a batch.

    Raises:
        DataError: The file holds no whole number of records, or a label above 9.

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
