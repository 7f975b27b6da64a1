"""The user's data folder: which files lie in it, and what is in them."""

import gzip
import hashlib
import os
import zlib
from pathlib import Path

import platformdirs

from simulator.scenario.errors import DataError

FOLDER = "STALESIM_DATA"
"""Environment variable that names the data folder."""
GZIP = b"\x1f\x8b"


def data_folder() -> Path:
    """Returns the folder of real data files: `STALESIM_DATA`, else the user's own."""
    named = os.environ.get(FOLDER)
    return Path(named or platformdirs.user_data_dir("stalesim")).expanduser()


def plain(name: str) -> str:
    """Returns a name in lower case, letters and digits only: `fashionmnist`."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def candidates(*folders: str) -> list[Path]:
    """Returns the files that may belong to a data set.

    Args:
        folders: plain names of its subfolders, which are searched at any depth.

    Returns:
        Files of those subfolders, then those that lie in the data folder itself.
    """
    root = data_folder()
    if not root.is_dir():
        return []
    entries = sorted(root.iterdir())
    deep = [
        path
        for entry in entries
        if entry.is_dir() and plain(entry.name) in folders
        for path in sorted(entry.rglob("*"))
    ]
    return [path for path in (*deep, *entries) if path.is_file()]


def subfolder(path: Path) -> str:
    """Returns the plain name of the subfolder that holds a file, "" for none."""
    parts = path.relative_to(data_folder()).parts
    return plain(parts[0]) if len(parts) > 1 else ""


def head(path: Path, size: int) -> bytes:
    """Returns the first bytes of a file's content, fewer if it cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(max(size, len(GZIP)))
        if not start.startswith(GZIP):
            return start[:size]
        with gzip.open(path) as file:
            return file.read(size)
    except (OSError, EOFError, zlib.error):
        return b""


def read(path: Path) -> bytes:
    """Returns the content of a file, unzipped if it is gzipped.

    Raises:
        DataError: it cannot be read, or its gzip stream is damaged.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} must be a readable file, got: {error.strerror}; check its name "
            "and permissions"
        ) from error
    if not content.startswith(GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} must be a whole gzip file, got: {error}; download it again"
        ) from error


def md5(path: Path) -> str:
    """Returns the md5 of a file as it lies there, "" if it cannot be read."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(
                file, lambda: hashlib.md5(usedforsecurity=False)
            )
    except OSError:
        return ""
    return digest.hexdigest()


def missing(name: str, absent: list[str], source: str, extra: str = "") -> DataError:
    """Returns the error that says which files are missing and where they belong.

    Args:
        name: of the data set, and of its subfolder.
        absent: names of the missing files.
        source: the source that demands them.
        extra: a further remark, "" for none.
    """
    noun = "is" if len(absent) == 1 else "are"
    place = "it in" if len(absent) == 1 else "them in"
    return DataError(
        f"{', '.join(absent)} of {name} {noun} missing; put {place} "
        f"{data_folder() / name} (the data folder is chosen by {FOLDER}), or take "
        f"source: auto instead of {source}{extra}"
    )
