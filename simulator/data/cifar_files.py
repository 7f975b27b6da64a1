"""Records of CIFAR's binary versions, from their archives."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from ..config.errors import DataError
from ..storage.archive import members

PIXELS = 3 * 32 * 32
"""Bytes of an image: the red, green and blue planes row by row."""


class Records(NamedTuple):
    """Images of a file.

    Attributes:
        x: Their pixels.
        labels: Their labels, one or two.
    """

    x: UInt8[np.ndarray, "N P"]
    labels: UInt8[np.ndarray, "N L"]


def records(
    archive: Path, names: tuple[str, ...], num_labels: tuple[int, ...]
) -> list[Records]:
    """Returns the records of some files, in their order.

    Args:
        archive: Path of the archive that holds them.
        names: Names of the files.
        num_labels: Number of classes of each of a record's labels, which stand first.

    Raises:
        DataError: The archive is damaged or lacks a file, or a label is too high.

    Source: the CIFAR page, binary versions.
    """
    packed = {Path(name).name: content for name, content in members(archive)}
    absent = [name for name in names if name not in packed]
    if absent:
        raise DataError(
            f"{archive} must hold {absent[0]}, got {len(packed)} other files; "
            "download it again"
        )
    return [_parsed(archive, packed[name], num_labels) for name in names]


def _parsed(path: Path, content: bytes, num_labels: tuple[int, ...]) -> Records:
    first = len(num_labels)
    size = first + PIXELS
    if not content or len(content) % size:
        raise DataError(
            f"{path} must hold records of {size} bytes, got {len(content)} bytes; "
            "download it again"
        )
    found = np.frombuffer(content, np.uint8).reshape(-1, size)
    for place, number in enumerate(num_labels):
        if (most := found[:, place].max()) >= number:
            raise DataError(
                f"{path} must hold labels from 0 to {number - 1}, got {most}; "
                "download it again"
            )
    return Records(found[:, first:], found[:, :first])
