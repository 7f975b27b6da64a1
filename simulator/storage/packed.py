"""The files in an archive, tar or zip, which may be damaged or malicious."""

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from ..config.errors import DataError
from . import files, limits

ZIP = b"PK\x03\x04"
DAMAGED = (
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
    except DAMAGED as error:
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
