"""Arrays of npz files, and files of tar and zip archives: damaged or malicious ones."""

import hashlib
import io
import lzma
import math
import os
import tarfile
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np

from ...parts.errors import DataError
from ..cache import cache_folder
from . import archive, files

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


def packed(arrays: Arrays, *, tight: bool = False) -> bytes:
    """Returns an npz file of some arrays, compressed if `tight`."""
    buffer = io.BytesIO()
    save: Callable[..., None] = np.savez_compressed if tight else np.savez
    save(buffer, **arrays)
    return buffer.getvalue()


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
                    f"{member.filename}, whose header says {files.shown(needed)}, in "
                    f"{files.shown(member.file_size)}"
                )
    files.check(total, len(content))


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
XZ = b"\xfd7zXZ\x00"
DAMAGED_ARCHIVE = (
    *(OSError, EOFError, LookupError, ValueError, RuntimeError, NotImplementedError),
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
"""Errors of both libraries on damaged, encrypted or unknown archives."""


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yields name and content of every file in a zip or tar archive, in its order.

    Nothing is written to the disk, so that any name is safe.

    Raises:
        DataError: It cannot be read, is damaged, or would unpack to too much.
    """
    content = files.read(path)
    try:
        if content.startswith(XZ):
            with lzma.open(io.BytesIO(content)) as file:
                content = files.unpack(file.read, len(content))
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
        files.check(sum(one.file_size for one in kept), len(content))
        for one in kept:
            yield one.filename, archive.read(one)


def _tarred(content: bytes) -> Iterator[tuple[str, bytes]]:
    # What `files.read` has unzipped is as large as its members together.
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for one in archive:
            file = archive.extractfile(one) if one.isfile() else None
            if file is not None:
                yield one.name, file.read()


DIGEST = "digest"


def cached(name: str, make: Callable[[], Arrays]) -> Arrays:
    """Returns arrays from the cache, or makes them and keeps them there.

    Args:
        name: Name of the arrays, and version of the code that makes them.
        make: Makes them; called where the cache has none, or damaged ones.
    """
    arrays = load(name)
    if arrays is None:
        arrays = make()
        keep(name, arrays)
    return arrays


def cached_of(name: str, paths: Iterable[Path], make: Callable[[], Arrays]) -> Arrays:
    """Returns arrays as `cached` does, made of some files, which count as read."""
    digest = hashlib.sha256()
    for path in paths:
        files.note(path)
        digest.update(files.digest(path, "sha256").encode())
    return cached(f"{name}-{digest.hexdigest()[:32]}", make)


def load(name: str) -> Arrays | None:
    """Returns arrays from the cache; None if it has none, or damaged ones."""
    folder = cache_folder()
    if folder is None:
        return None
    try:
        arrays = archive.arrays((folder / f"{name}.npz").read_bytes())
        digest = arrays.pop(DIGEST)
    except (OSError, ValueError, KeyError):
        return None
    return arrays if digest.tobytes() == _digest(name, arrays) else None


def keep(name: str, arrays: Arrays) -> None:
    """Keeps arrays in the cache, if there is one.

    A folder that cannot be written, or is full, costs time and nothing else.
    """
    folder = cache_folder()
    if folder is not None:
        with suppress(OSError):
            _save(folder / f"{name}.npz", name, arrays)


def _save(path: Path, name: str, arrays: Arrays) -> None:
    """Writes a cache file under another name and renames it, so that none is half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = np.frombuffer(_digest(name, arrays), np.uint8)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(packed({**arrays, DIGEST: digest}))
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _digest(name: str, arrays: Arrays) -> bytes:
    """Returns the SHA-256 of a name and of arrays with their names and shapes."""
    digest = hashlib.sha256(name.encode())
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        digest.update(f"{key} {array.dtype.str} {array.shape}".encode())
        digest.update(array.data)
    return digest.digest()
