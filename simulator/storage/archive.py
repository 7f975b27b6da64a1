"""Reads arrays from the bytes of an npz file, which may be damaged or malicious."""

import io
import lzma
import math
import tokenize
import zipfile
import zlib
from typing import IO

import numpy as np

from . import limits

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
