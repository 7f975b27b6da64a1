"""Arrays of npz files, and files of tar and zip archives: damaged or malicious ones."""

import io
import lzma
import math
import tarfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from ...parts.errors import DataError
from . import files, limits

Arrays = dict[str, np.ndarray]

DAMAGED = (
    # of numpy, of an array's header or its size
    *(EOFError, LookupError, MemoryError, OverflowError, SyntaxError, TypeError),
    *(ValueError, tokenize.TokenError),
    # of the zip file and what is compressed in it; RuntimeError if it is encrypted
    *(OSError, RuntimeError, lzma.LZMAError, zipfile.BadZipFile, zlib.error),
)
"""Everything that numpy lets through from a damaged file, found by damaging many."""
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""Readers of an array's header, by its version; 3.0 is for names of columns."""


def arrays(content: bytes) -> Arrays:
    """Returns the arrays of an npz file, without ever unpickling anything.

    Raises:
        ValueError: it is no npz file of plain arrays; the message is one line.
    """
    try:
        if content.startswith(np.lib.format.MAGIC_PREFIX):
            raise ValueError("a single array")
        _check(content)
        with np.load(io.BytesIO(content), allow_pickle=False) as loaded:
            return {name: np.asarray(loaded[name]) for name in loaded.files}
    except DAMAGED as error:
        says = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(says) from error


def _check(content: bytes) -> None:
    """Refuses arrays that are too large, or larger than the file says that they are.

    By the headers alone, since numpy takes memory for whatever they say.
    """
    total = 0
    with zipfile.ZipFile(io.BytesIO(content)) as members:
        for member in members.infolist():
            total += member.file_size
            if not member.filename.endswith(".npy"):
                continue
            with members.open(member) as file:
                needed = _size(file)
            if needed > member.file_size:
                raise ValueError(
                    f"{member.filename}, whose header says {limits.shown(needed)}, in "
                    f"{limits.shown(member.file_size)}"
                )
    limits.check(total, len(content))


def _size(file: IO[bytes]) -> int:
    """Returns the bytes of an npy file by its header."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"an array of version {version[0]}.{version[1]}")
    shape, _, dtype = HEADERS[version](file)
    if any(size < 0 for size in shape):
        raise ValueError(f"an array of the shape {shape}")
    return file.tell() + math.prod(shape) * dtype.itemsize


ZIP = b"PK\x03\x04"
DAMAGED_ARCHIVE = (
    *(OSError, EOFError, LookupError, ValueError, RuntimeError, NotImplementedError),
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error),
)
"""Errors of both libraries on damaged, encrypted or unknown archives."""


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yields name and content of every file in an archive, in the archive's order.

    Nothing is written to the disk, so that a name may say what it will.

    Args:
        path: Path of a zip file, or of a tar file, gzipped or not.

    Raises:
        DataError: It cannot be read, is damaged, or would unpack to too much.
    """
    content = files.read(path)
    try:
        read = _zipped if content.startswith(ZIP) else _tarred
        yield from read(content)
    except DataError:
        raise
    except DAMAGED_ARCHIVE as error:
        says = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"{path} must be a whole zip or tar archive, got: {says}; download it again"
        ) from error


def _zipped(content: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        kept = [one for one in archive.infolist() if not one.is_dir()]
        limits.check(sum(one.file_size for one in kept), len(content))
        for one in kept:
            yield one.filename, archive.read(one)


def _tarred(content: bytes) -> Iterator[tuple[str, bytes]]:
    # What `files.read` has unzipped is as large as its members together.
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for one in archive:
            file = archive.extractfile(one) if one.isfile() else None
            if file is not None:
                yield one.name, file.read()
