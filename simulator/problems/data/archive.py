"""Reads arrays from the bytes of an npz file, which may be damaged or a stranger's."""

import io
import lzma
import tokenize
import zipfile
import zlib

import numpy as np

Arrays = dict[str, np.ndarray]

DAMAGED = (
    # of numpy, of an array's header or its size
    *(EOFError, LookupError, MemoryError, OverflowError, SyntaxError, TypeError),
    *(ValueError, tokenize.TokenError),
    # of the zip file and what is compressed in it; RuntimeError if it is encrypted
    *(OSError, RuntimeError, lzma.LZMAError, zipfile.BadZipFile, zlib.error),
)
"""Everything that numpy lets through from a damaged file, found by damaging many."""


def arrays(content: bytes) -> Arrays:
    """Returns the arrays of an npz file, without ever unpickling anything.

    Raises:
        ValueError: it is no npz file of plain arrays; the message is one line.
    """
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise ValueError("a single array")
        with loaded:
            return {name: np.asarray(loaded[name]) for name in loaded.files}
    except DAMAGED as error:
        says = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(says) from error
