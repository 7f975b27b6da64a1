"""A disk in memory that fails, tears writes, and forgets what was not synced.

A file is an inode: its bytes, and those that would survive a loss of power. A name is
safe once its folder was synced. What was not made safe may survive or not: after a
loss of power each such name and each such file is as it was, as it is, or torn.
"""

import contextlib
import errno
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stalesim.simulator.files.study.disk import Disk, LockedError


class KilledError(BaseException):
    """The process is dead; no `except` of the program may see it."""


@dataclass
class Inode:
    """A file.

    Attributes:
        data: what it holds.
        safe: what it holds after a loss of power at the latest.
        holder: of the lock on it, if any.
    """

    data: bytes
    safe: bytes = b""
    holder: object = None


@dataclass
class Files:
    """What lies on the disk, whoever looks at it.

    Attributes:
        names: of files, with their folders; None for a folder.
        safe: names that survive a loss of power at the latest.
    """

    names: dict[str, Inode | None] = field(default_factory=dict)
    safe: dict[str, Inode | None] = field(default_factory=dict)

    def unlock(self, holder: object) -> None:
        """Lets go of what a process holds, as its death does."""
        for inode in self.names.values():
            if inode is not None and inode.holder is holder:
                inode.holder = None

    def lose_power(self, rng: np.random.Generator) -> None:
        """Forgets what was not synced, all, some or nothing of it."""
        changed = [
            path
            for path in {**self.names, **self.safe}
            if self.names.get(path, 0) is not self.safe.get(path, 0)
        ]
        left = dict(self.names)
        for path in changed:
            if rng.random() < 0.5:
                if path in self.safe:
                    left[path] = self.safe[path]
                else:
                    left.pop(path, None)
        # A file needs its folder.
        left = {
            path: inode
            for path, inode in left.items()
            if _parent(path) not in self.names or _parent(path) in left
        }
        for inode in {id(inode): inode for inode in left.values()}.values():
            if inode is not None:
                inode.holder = None
                if inode.data != inode.safe:
                    inode.data = inode.safe = _some_of(inode, rng)
        self.names, self.safe = left, dict(left)


def _parent(path: str) -> str:
    """Returns the folder of a file; strings are much faster than paths."""
    return path.rpartition("/")[0]


def _some_of(inode: Inode, rng: np.random.Generator) -> bytes:
    """Returns what may be left of a file that was not synced."""
    kind = rng.integers(4)
    if kind == 0:
        return inode.safe
    if kind == 1:
        return inode.data
    cut = int(rng.integers(len(inode.data) + 1))
    if kind == 2:
        return inode.data[:cut]
    return inode.data[:cut] + bytes(len(inode.data) - cut)


class FakeDisk(Disk):
    """One process's view of the files.

    Args:
        files: that lie on the disk.
        before: is called with the name of each call before it happens; may raise
            OSError or KilledError, or return a fraction of a write that is done before
            it raises `torn`.
    """

    def __init__(
        self,
        files: Files,
        before: Callable[[str], BaseException | None] = lambda _: None,
        torn: float = 0.5,
    ) -> None:
        self.files, self._before, self._torn = files, before, torn

    def _begin(self, name: str) -> None:
        """Raises what stops a call."""
        if (fault := self._before(name)) is not None:
            raise fault

    def make(self, folder: Path, *, parents: bool = False, new: bool = False) -> None:
        self._begin("make")
        names = self.files.names
        if new and str(folder) in names:
            raise FileExistsError(errno.EEXIST, "File exists", folder)
        if parents:
            for parent in reversed(folder.parents):
                names.setdefault(str(parent), None)
        elif _parent(str(folder)) not in names:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", folder)
        names.setdefault(str(folder), None)

    def write(self, path: Path, data: bytes) -> None:
        fault = self._before("write")
        self._needs_folder(path)
        if fault is None:
            self.files.names[str(path)] = Inode(data)
            return
        if self._torn > 0:
            self.files.names[str(path)] = Inode(data[: int(self._torn * len(data))])
        raise fault

    def append(self, path: Path, data: bytes) -> None:
        fault = self._before("append")
        self._needs_folder(path)
        inode = self.files.names.get(str(path))
        if inode is None:
            inode = self.files.names[str(path)] = Inode(b"")
        part = len(data) if fault is None else int(self._torn * len(data))
        inode.data += data[:part]
        if fault is not None:
            raise fault

    def sync(self, path: Path) -> None:
        self._begin("sync")
        files = self.files
        if str(path) not in files.names:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        inode = files.names[str(path)]
        if inode is not None:
            inode.safe = inode.data
            return
        for name in {*files.names, *files.safe}:
            if _parent(name) == str(path):
                if name in files.names:
                    files.safe[name] = files.names[name]
                else:
                    files.safe.pop(name, None)

    def rename(self, old: Path, new: Path) -> None:
        self._begin("rename")
        names = self.files.names
        if str(old) not in names:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", old)
        self._needs_folder(new)
        if names[str(old)] is None and self.names(new):
            raise OSError(errno.ENOTEMPTY, "Directory not empty", new)
        for name in [n for n in names if n == str(old) or n.startswith(f"{old}/")]:
            names[f"{new}{name.removeprefix(str(old))}"] = names.pop(name)

    def remove(self, path: Path) -> None:
        self._begin("remove")
        self.files.names.pop(str(path), None)

    def remove_folder(self, folder: Path) -> None:
        self._begin("remove_folder")
        for name in list(self.files.names):
            if name == str(folder) or name.startswith(f"{folder}/"):
                del self.files.names[name]

    def read(self, path: Path) -> bytes:
        self._begin("read")
        inode = self.files.names.get(str(path))
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return inode.data

    def names(self, folder: Path) -> list[str]:
        first = f"{folder}/"
        names = (n.removeprefix(first) for n in self.files.names if n.startswith(first))
        return sorted(name for name in names if "/" not in name)

    def exists(self, path: Path) -> bool:
        return str(path) in self.files.names

    def identity(self, path: Path) -> Hashable:
        inode = self.files.names.get(str(path))
        return None if inode is None else id(inode)

    @contextlib.contextmanager
    def lock(self, path: Path, *, wait: bool = False) -> Iterator[None]:
        self._begin("lock")
        self._needs_folder(path)
        inode = self.files.names.setdefault(str(path), Inode(b""))
        assert inode is not None
        while inode.holder is not None:
            if not wait:
                raise LockedError
            self._wait()
        inode.holder = self
        try:
            yield
        finally:
            if inode.holder is self:
                inode.holder = None

    def _wait(self) -> None:
        """Lets other processes go on."""
        raise AssertionError("a process of one thread would wait for itself")

    def _needs_folder(self, path: Path) -> None:
        if _parent(str(path)) not in self.files.names:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
