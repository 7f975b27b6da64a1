"""The cache folder: arrays of data, and compiled programs. All can be made again."""

import os
from contextlib import suppress
from pathlib import Path

import platformdirs

FOLDER = "STALESIM_CACHE"
"""Environment variable that names the cache folder; empty or `off` for no cache."""
MOST_BYTES = 2**30
"""Bytes of compiled programs that are kept."""


def cache_folder() -> Path | None:
    """Returns the cache folder, `None` where the user wants no cache."""
    named = os.environ.get(FOLDER)
    if named is None:
        return Path(platformdirs.user_cache_dir("stalesim"))
    if named.strip().lower() in ("", "off"):
        return None
    return Path(named).expanduser()


def programs() -> Path | None:
    """Returns the folder of compiled programs, `None` where there is no cache."""
    folder = cache_folder()
    return None if folder is None else folder / "compiled"


def shorten(most: int = MOST_BYTES) -> int:
    """Removes the oldest compiled programs beyond `most` bytes, and returns theirs.

    Programs of another version of JAX or of a changed model are never read again.
    """
    kept = removed = 0
    for _, size, path in sorted(_programs(), reverse=True):
        kept += size
        if kept > most:
            with suppress(OSError):  # another study has removed it, or may alone
                path.unlink()
                removed += size
    return removed


def _programs() -> list[tuple[float, int, Path]]:
    """Returns time of change, bytes and path of each; others may remove some."""
    folder = programs()
    found: list[tuple[float, int, Path]] = []
    for path in folder.glob("*") if folder is not None else ():
        with suppress(OSError):
            known = path.stat()
            found.append((known.st_mtime, known.st_size, path))
    return found
