"""The SHA-256 of files, found again without reading them as long as nothing changes.

A file is recognised by its size, its times, and its number on the disk. Those of large
files are kept in the user's cache folder as well, for other processes.
"""

import hashlib
import json
import os
import time
from pathlib import Path

import numpy as np

from ...parts.errors import DataError
from ...parts.own_code import Content
from . import archive

FOLDER = "digests"
"""Folder of the digests, in the cache folder."""
LARGE = 2**20
"""Bytes from which a digest is cached in a file: 1 ms of hashing."""
YOUNG_NS = 2 * 10**9
"""A file that has changed so lately may change again without a later time: clocks of
file systems tick in steps of up to two seconds (FAT)."""


Stamp = tuple[int, int, int, int]
"""Size, times of modification and change in ns, and inode of a file."""


_known: dict[str, tuple[Stamp, str]] = {}
"""Digests of files by their paths, with the stamps that they had."""


def of_file(path: Path) -> Content:
    """Returns the place, the SHA-256 and the size of a file in its present state.

    Raises:
        DataError: it cannot be read.
    """
    place = str(path.absolute())
    try:
        with path.open("rb") as file:
            stamp = _stamp(file.fileno())
            found = _remembered(place, stamp)
            if found is None:
                now = time.time_ns()
                found = hashlib.file_digest(file, "sha256").hexdigest()
                after = _stamp(file.fileno())
                settled = now - max(stamp[1:3]) > YOUNG_NS
                if settled and after == stamp:
                    _remember(place, stamp, found)
                stamp = after
    except OSError as error:
        raise DataError(
            f"{path} must be a readable file, got: {error.strerror}; check its name "
            "and permissions"
        ) from error
    return Content(place, found, stamp[0])


def of_text(text: str) -> str:
    """Returns the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _stamp(handle: int) -> Stamp:
    found = os.fstat(handle)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _remembered(place: str, stamp: Stamp) -> str | None:
    """Returns the digest of a file that has not changed since it was found."""
    if place not in _known and stamp[0] >= LARGE:
        kept = archive.load(_name(place))
        if kept is not None:
            size, modified, changed, inode, sha256 = json.loads(kept["found"].tobytes())
            _known[place] = (size, modified, changed, inode), sha256
    known = _known.get(place)
    return known[1] if known is not None and known[0] == stamp else None


def _remember(place: str, stamp: Stamp, sha256: str) -> None:
    _known[place] = stamp, sha256
    if stamp[0] >= LARGE:
        text = json.dumps([*stamp, sha256])
        archive.keep(_name(place), {"found": np.frombuffer(text.encode(), np.uint8)})


def _name(place: str) -> str:
    return f"{FOLDER}/{of_text(place)}"
