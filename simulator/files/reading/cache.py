"""Arrays that take long to make, kept in the user's cache folder.

A cache never decides a result: a damaged file is made again, and where nothing can be
written the arrays are simply made every time.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from . import archive, files
from .archive import Arrays

FOLDER = "STALESIM_CACHE"
"""Environment variable that names the cache folder; empty or `off` for no cache."""
DIGEST = "digest"


def cache_folder() -> Path | None:
    """Returns the cache folder, `None` where the user wants no cache."""
    named = os.environ.get(FOLDER)
    if named is None:
        return Path(platformdirs.user_cache_dir("stalesim"))
    if named.strip().lower() in ("", "off"):
        return None
    return Path(named).expanduser()


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
    """Returns arrays that are made of some files, from the cache if of these files.

    Args:
        name: Name of the arrays, and version of the code that makes them.
        paths: Files whose content decides on them; they count as read.
        make: Makes them; called where the cache has none, or damaged ones.
    """
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
    contents: dict[str, Any] = {**arrays, DIGEST: digest}
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **contents)
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
