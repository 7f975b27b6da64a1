"""Files in idx format: MNIST's and Fashion-MNIST's, which have the same names.

The md5 tells the official gzip files apart; all others belong to the set whose name the
innermost of their folders has.
"""

import math
import re
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from ..config.errors import DataError
from ..storage import files
from . import names
from .base import Dataset
from .fashion_mnist import record as fashion_mnist
from .file_set import FileSet, Roles, by_role
from .mnist import record as mnist
from .parts import Data
from .split import finished

ROLES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
"""Official names of a set's four files, without `.gz`."""
RECORDS = {"mnist": mnist.PUBLISHED, "fashion_mnist": fashion_mnist.PUBLISHED}
OFFICIAL = {
    file.checksum.removeprefix("md5:"): (name, file.name.removesuffix(".gz"))
    for name, record in RECORDS.items()
    for file in record.files
}
"""Set and role of the official gzip files, by their md5."""
SETS = {"mnist": "mnist", "fashionmnist": "fashion_mnist"}
"""Set of a folder, by its plain name."""
NAME = re.compile(r"idx[13]-ubyte", re.IGNORECASE)
"""Pattern in the names of files that lie in no folder of a set."""
DIMENSIONS = {b"\0\0\x08\x03": 3, b"\0\0\x08\x01": 1}
"""Number of dimensions of unsigned bytes, by magic number."""
OFFICIAL_ROWS = {60_000: "train", 10_000: "t10k"}
LARGEST_GZIP = 64 * 2**20
"""Bytes that no official file has; larger files need no md5."""


def file_set(name: str) -> FileSet:
    """Returns the four files of a set.

    Args:
        name: `mnist` or `fashion_mnist`.
    """

    def role(path: Path) -> str:
        belongs, found = identify(path)
        return found if belongs == name else ""

    return FileSet(
        name,
        {"idx": ROLES},
        find=lambda: by_role(SETS, NAME, role),
        remark=lambda _: _loose(name),
        published=RECORDS[name],
    )


def identify(path: Path) -> tuple[str, str]:
    """Returns the set and the role of a file, "" where they are unknown.

    The role follows from the md5, else from magic number and name, else from magic
    number and the official number of rows. A damaged file keeps the role that its name
    claims.
    """
    if files.head(path, 1) and _small_gzip(path):
        official = OFFICIAL.get(files.md5(path))
        if official is not None:
            return official
    return SETS.get(files.folder_of(path, SETS), ""), _role(path)


def _small_gzip(path: Path) -> bool:
    """Says whether a file may be an official gzip file."""
    with path.open("rb") as file:
        return file.read(2) == files.GZIP and path.stat().st_size < LARGEST_GZIP


def _role(path: Path) -> str:
    """Returns the role of a file by its first bytes and its name, "" for none."""
    start, name = files.head(path, 8), path.name.lower()
    if start[:4] in DIMENSIONS:
        images = DIMENSIONS[start[:4]] == 3
    elif "idx3-ubyte" in name or "idx1-ubyte" in name:
        images = "idx3-ubyte" in name
    else:
        return ""
    if "train" in name:
        half = "train"
    elif "t10k" in name or "test" in name:
        half = "t10k"
    else:
        half = OFFICIAL_ROWS.get(int.from_bytes(start[4:8], "big"), "")
    if not half:
        return ""
    return f"{half}-images-idx3-ubyte" if images else f"{half}-labels-idx1-ubyte"


def load(config: Data, name: str, found: Roles) -> Dataset:
    """Returns a set from its four files.

    Args:
        config: Classes, scale, limit and split seed.
        name: Name of the set.
        found: Paths of the files by their roles.

    Raises:
        DataError: A file is damaged, or does not fit the others.
        ScenarioError: The limit is too high, or the classes do not exist.
    """
    halves = []
    for images, labels in (ROLES[:2], ROLES[2:]):
        x, y = parse(found[images], 3), parse(found[labels], 1)
        if len(x) != len(y):
            raise DataError(
                f"{found[labels]} must hold one label for each of the {len(x)} images "
                f"of {found[images].name}, got {len(y)}; download both again"
            )
        if y.max() > 9:
            raise DataError(
                f"{found[labels]} must hold labels from 0 to 9, got {y.max()}; "
                "download it again"
            )
        halves.append((x, y))
    train, test = halves
    if train[0].shape[1:] != test[0].shape[1:]:
        raise DataError(
            f"{found[ROLES[2]]} must hold images of the shape {train[0].shape[1:]} of "
            f"{found[ROLES[0]].name}, got {test[0].shape[1:]}; download both again"
        )
    return finished(
        config,
        name,
        (train[0].reshape(len(train[0]), -1), train[1]),
        (test[0].reshape(len(test[0]), -1), test[1]),
        num_classes=10,
        columns=names.pixels(*train[0].shape[1:]),
        largest=255.0,
    )


def _loose(name: str) -> str:
    """Returns a remark on an idx file that could be of either set, "" for none."""
    for path in files.candidates(SETS, NAME):
        belongs, role = identify(path)
        if role and not belongs:
            return (
                f"; {path} is neither set's official gzip file, so that only a folder "
                f"named {name} can say whose it is"
            )
    return ""


def parse(path: Path, dimensions: int) -> UInt8[np.ndarray, "..."]:
    """Returns the array of an idx file of unsigned bytes, gzipped or not.

    Args:
        path: Path of the file.
        dimensions: 3 for images, 1 for labels.

    Raises:
        DataError: The magic number is another, or the header promises more or fewer
            bytes.

    Source: the idx format of MNIST: magic number, sizes as big-endian int32, bytes.
    """
    content = files.read(path)
    start = 4 + 4 * dimensions
    if DIMENSIONS.get(content[:4]) != dimensions or len(content) < start:
        raise DataError(
            f"{path} must begin with the idx magic number 0x{0x800 + dimensions:08x} "
            f"and {dimensions} sizes, got 0x{content[:4].hex()}; download it again"
        )
    shape = tuple(
        int.from_bytes(content[4 + 4 * axis : 8 + 4 * axis], "big")
        for axis in range(dimensions)
    )
    expected = start + math.prod(shape)
    if len(content) != expected or expected == start:
        raise DataError(
            f"{path} must hold {expected} bytes, and at least one row, by its header, "
            f"got {len(content)}; download it again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
