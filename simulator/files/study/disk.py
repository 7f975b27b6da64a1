"""The one layer through which a study is written and read.

Everything that can fail while a study is written is here, so that tests can replace it
by a disk that fails, tears writes or forgets what was not synced.
"""

import contextlib
import json
import os
import shutil
import warnings
import zlib
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from ...parts.errors import StudyError
from ...parts.json_text import Tree

LOCK = ".lock"
"""File by whose lock a folder has one writer."""
PARTIAL = ".partial"
"""Ending of a file that is being written, and of the remains of a killed one."""


class LockedError(Exception):
    """Another process holds a lock."""


class BusyError(StudyError):
    """Another process writes a folder."""


class Disk:
    """The files of the operating system. Every method may raise an OSError."""

    def __repr__(self) -> str:
        return "DISK"  # in signatures

    def make(self, folder: Path, *, parents: bool = False, new: bool = False) -> None:
        """Makes a folder, unless it is there; a `new` one must not be."""
        folder.mkdir(exist_ok=not new, parents=parents)

    def write(self, path: Path, data: bytes) -> None:
        """Writes a file; a kill may leave any part of it."""
        path.write_bytes(data)

    def append(self, path: Path, data: bytes) -> None:
        """Adds to a file, which is made if need be."""
        with path.open("ab") as file:
            file.write(data)

    def sync(self, path: Path) -> None:
        """Returns when the file, or the names in the folder, survive a loss of power.

        A system that cannot open folders has no such call for them.
        """
        if os.name == "nt" and path.is_dir():
            return
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def rename(self, old: Path, new: Path) -> None:
        """Renames a file or folder; a file of the new name is replaced."""
        old.replace(new)

    def remove(self, path: Path) -> None:
        """Removes a file, if it is there."""
        path.unlink(missing_ok=True)

    def remove_folder(self, folder: Path) -> None:
        """Removes a folder and all that is in it, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)

    def read(self, path: Path) -> bytes:
        """Returns the content of a file."""
        return path.read_bytes()

    def names(self, folder: Path) -> list[str]:
        """Returns the names in a folder, in order; none if it is not there."""
        found = folder.iterdir() if folder.is_dir() else ()
        return sorted(path.name for path in found)

    def exists(self, path: Path) -> bool:
        """Returns whether there is a file or folder of this name."""
        return path.exists()

    def identity(self, path: Path) -> Hashable:
        """Returns the identity of a file among those of its name; None without one."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    @contextlib.contextmanager
    def lock(self, path: Path, *, wait: bool = False) -> Iterator[None]:
        """Keeps other processes from taking the same lock until the end.

        Raises:
            LockedError: another process holds it, and there is no waiting.
        """
        held = FileLock(path, timeout=-1 if wait else 0)
        try:
            held.acquire()
        except Timeout:
            raise LockedError from None
        try:
            yield
        finally:
            held.release()


DISK = Disk()
"""The disk for studies."""


def replace(disk: Disk, path: Path, data: bytes, *, durable: bool = True) -> None:
    """Writes a file, all of it or nothing.

    Args:
        disk: Disk of the file.
        path: Path of the file.
        data: Content of the file.
        durable: Whether it must survive a loss of power from here on. A file with a
            checksum that can be made again need not.
    """
    partial = path.with_name(path.name + PARTIAL)
    disk.write(partial, data)
    if durable:
        disk.sync(partial)
    disk.rename(partial, path)
    if durable:
        disk.sync(path.parent)


@contextlib.contextmanager
def explained(folder: Path, remedy: str = "") -> Iterator[None]:
    """Turns errors of writing a study into messages for its user.

    Raises:
        StudyError: one line, in place of an OSError.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise StudyError(
            f"{folder}: must stay in place while its study is written, but was removed "
            f"or replaced; run the scenario again into a new folder"
        ) from error
    except OSError as error:
        remedy = remedy or f"make room, then stalesim resume {folder}"
        raise StudyError(
            f"{folder}: the study must be written, but {error.strerror or error}; "
            f"earlier results are kept; {remedy}"
        ) from error


@contextlib.contextmanager
def locked(folder: Path, disk: Disk = DISK) -> Iterator[None]:
    """Makes the folder, and keeps others from writing it until the end.

    Raises:
        StudyError: it cannot be made, or another process writes it (`BusyError`).
    """
    remedy = "choose another folder by --out"
    try:
        with contextlib.ExitStack() as held:
            try:
                disk.make(folder, parents=True)
                held.enter_context(disk.lock(folder / LOCK))
            except OSError as error:
                is_file = isinstance(error, FileExistsError | NotADirectoryError)
                says = "is a file" if is_file else error.strerror or str(error)
                raise StudyError(
                    f"{folder}: must be a folder that can be written, but {says}; "
                    f"{remedy}"
                ) from None
            try:
                yield
            finally:
                _remove_if_empty(folder, disk)
    except LockedError:
        raise BusyError(
            f"{folder}: must be written by one process at a time, but another one is "
            f"at it; wait for it, or {remedy}"
        ) from None


def _remove_if_empty(folder: Path, disk: Disk) -> None:
    """Removes a folder in which nothing was started, for want of a valid scenario.

    The lock is never removed alone: who waits for it would not meet who takes it next.
    """
    with contextlib.suppress(OSError):
        if disk.names(folder) == [LOCK]:
            disk.remove_folder(folder)


Files = dict[str, dict[str, list[int]]]
"""Bytes and CRC-32 of the files of each table: `{table: {file: [bytes, crc]}}`."""


class StudyWarning(UserWarning):
    """A warning for the reader of a study."""


Ends = dict[int, Tree]
"""Ends of runs in the manifest, by the runs' numbers."""


def journal_line(record: Mapping[str, object]) -> bytes:
    """Returns a record as a line of a journal."""
    text = json.dumps(record, allow_nan=False).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read_journal(
    disk: Disk, path: Path, files: Files, *, quietly: bool = False
) -> tuple[Ends, Files]:
    """Returns the ends of runs that a study's journal notes, and the tables' files.

    The last line may be cut off by a kill; its task is repeated. Any other damaged line
    is skipped, with a warning: its runs count as not ended.

    Raises:
        StudyError: the file cannot be read.
    """
    ends: Ends = {}
    files = {table: dict(mine) for table, mine in files.items()}
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return ends, files  # the last session ended in order, and removed it
    except OSError as error:
        raise StudyError(
            f"{path}: must be readable, but {error.strerror or error}; mend that first"
        ) from None
    damaged = 0
    for record in _records(data):
        if record is None:
            damaged += 1
            continue
        # A joined file replaces the parts so far; parts noted later come on top.
        for table, mine in record.get("joined", {}).items():
            files[table] = mine
        for table, mine in record.get("parts", {}).items():
            files.setdefault(table, {}).update(mine)
        ends.update((int(run), end) for run, end in record["ends"].items())
    if damaged and not quietly:
        warnings.warn(
            f"{path}: {damaged} lines must be as they were written, but are damaged; "
            f"their runs count as not ended: stalesim resume {path.parent} repeats "
            f"them",
            StudyWarning,
            stacklevel=2,
        )
    return ends, files


def _records(data: bytes) -> Iterator[Tree | None]:
    """Yields the records of a journal, None for each that is damaged."""
    *lines, _ = data.split(b"\n")  # the last one has no end, or nothing in it
    for text in lines:
        checksum, _, record = text.partition(b" ")
        yield json.loads(record) if checksum == b"%08x" % zlib.crc32(record) else None
