"""Files and folders that are there as a whole, or not at all."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from ..simulator.files.study import StudyError

PARTIAL, WHOLE = ".stalesim-partial", ".stalesim-whole"
"""Names inside a folder: files being written; files to be moved up when whole."""
LOCK = ".stalesim-lock"
ROOM = "make room, or the folder writable"
"""What to do where a file cannot be written."""
OURS = (PARTIAL, WHOLE, LOCK)


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yields a path for a new file, which takes another's place when it is written.

    If anything fails before, the other file is left as it was. The next call replaces
    the remains of a killed one.
    """
    partial = path.with_name(f".stalesim-partial-{path.name}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str, what: str, remedy: str) -> None:
    """Writes a text in place of another, as a whole or not at all.

    Raises:
        StudyError: It cannot be written.
    """
    with written(path, what, remedy), replaced(path) as new:
        new.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def written(path: Path, what: str, remedy: str) -> Iterator[None]:
    """Returns, in one line, why something could not be written.

    Raises:
        StudyError: It cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise StudyError(
            f"{path}: {what} must be written, but {error.strerror or error}; {remedy}"
        ) from error


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[Path]:
    """Yields a folder whose content replaces another's when all of it is written.

    If anything fails before, the other stays empty, or is not made. The next call
    removes the remains of a killed one, which have different names.

    Raises:
        StudyError: The folder holds something, or another process is filling it.
        OSError: It cannot be written.
    """
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise StudyError(
            f"{folder}: must be written by one process at a time, but another one is "
            f"at it; wait for it, or choose another folder by --out"
        ) from None
    try:
        _move_up(folder)
        if any(entry.name not in OURS for entry in folder.iterdir()):
            raise StudyError(
                f"{folder}: must be a new or empty folder, but there is something; "
                f"remove it or choose another by --out"
            )
        partial = folder / PARTIAL
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        yield partial
        partial.rename(folder / WHOLE)
        _move_up(folder)
    finally:
        shutil.rmtree(folder / PARTIAL, ignore_errors=True)
        (folder / LOCK).unlink(missing_ok=True)
        lock.release()
        if made and not any(folder.iterdir()):
            folder.rmdir()


def _move_up(folder: Path) -> None:
    whole = folder / WHOLE
    if whole.is_dir():
        for entry in whole.iterdir():
            entry.rename(folder / entry.name)
        whole.rmdir()
