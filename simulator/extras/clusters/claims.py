"""Claims of tasks by processes of any machines, in a folder that they share.

A worker claims a task by making a folder of a new name, `TASK.NUMBER`, which succeeds
for one process only. While it executes the task, it regularly lengthens a file in
there: a beat. Another worker that has seen no beat for a lease, by its own clock, takes
over: it renames that folder, which again succeeds for one only, and claims the next
number. Clocks are never compared, and file locks are not needed.

A worker changes the study by renames alone: a file is written in the folder of the
claim and renamed into place, and a removed one is renamed into that folder (`Claimed`).
So a process that was stopped, and wakes after another took over, can change nothing:
the folder of all its renames is gone. Its files from before equal its successor's,
because results are deterministic.
"""

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

from ...files.study import Disk
from ...files.study.disk import PARTIAL

LOST, OVER = "lost", "over"
"""Endings of the names of claims that were taken over or left, and that have ended."""
BEAT = "beat"

Heart = Callable[[Disk, Path, float], contextlib.AbstractContextManager[None]]
"""Keeps a claim alive; gets its disk, its folder and the seconds between beats."""


BEAT_S = 5.0
"""Seconds of a worker's own clock between beats, and between checks of the others."""
LEASE_S = 60.0
"""Seconds without a beat after which a claim is taken over: several beats, and longer
than a file system may keep from one machine what another has done."""


@contextlib.contextmanager
def heart(disk: Disk, claim: Path, beat_s: float) -> Iterator[None]:
    """Lets a claim beat, in a thread, as long as it lasts."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(beat_s):
            with contextlib.suppress(OSError):  # it was taken over, or the disk is full
                disk.append(claim / BEAT, b".")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class LostError(Exception):
    """A file is missing, and so is the claim of who reads it."""


class Claimed(Disk):
    """A disk as the holder of a claim sees it, who can change nothing without it."""

    def __init__(self, disk: Disk, claim: Path) -> None:
        self._disk, self._claim = disk, claim
        self.make, self.names, self.exists = disk.make, disk.names, disk.exists

    def _own(self, path: Path) -> Path:
        return self._claim / path.name if path.name.endswith(PARTIAL) else path

    def write(self, path: Path, data: bytes) -> None:
        """Writes a file; all of it or nothing, as it is renamed into place."""
        own = self._own(path.with_name(path.name.removesuffix(PARTIAL) + PARTIAL))
        self._disk.write(own, data)
        if not path.name.endswith(PARTIAL):
            self._disk.rename(own, path)

    def append(self, path: Path, data: bytes) -> None:
        there = self.read(path) if self.exists(path) else b""
        self.write(path, there + data)

    def read(self, path: Path) -> bytes:
        try:
            return self._disk.read(path)
        except FileNotFoundError:
            if not self.exists(self._claim):
                raise LostError from None
            raise

    def sync(self, path: Path) -> None:
        self._disk.sync(self._own(path))

    def rename(self, old: Path, new: Path) -> None:
        self._disk.rename(self._own(old), new)

    def remove(self, path: Path) -> None:
        self._disk.remove(self._gone(path))

    def remove_folder(self, folder: Path) -> None:
        self._disk.remove_folder(self._gone(folder))

    def _gone(self, path: Path) -> Path:
        gone = self._claim / "gone"
        try:
            self._disk.rename(path, gone)
        except FileNotFoundError:
            if not self.exists(self._claim):
                raise
        return gone

    def identity(self, path: Path) -> Hashable:
        return self._disk.identity(path)


class Claims:
    """The claims of a session, as one worker sees and makes them.

    Args:
        folder: Their folder.
        disk: Disk of the study.
        clock: Seconds of this worker's clock, which need not agree with any other.
        lease_s: Seconds without a beat after which a claim is taken over.
    """

    def __init__(
        self, folder: Path, disk: Disk, clock: Callable[[], float], lease_s: float
    ) -> None:
        self._folder, self._disk, self._clock = folder, disk, clock
        self._lease_s = lease_s
        self._seen: dict[str, tuple[int, float]] = {}

    def look(self) -> dict[str, dict[int, str]]:
        """Returns all claims: the state of each number ("" for a claim), by task."""
        found: dict[str, dict[int, str]] = {}
        for name in self._disk.names(self._folder):
            task, number, *left = name.split(".")
            mine = found.setdefault(task, {})
            mine[int(number)] = left[0] if left else mine.get(int(number), "")
        return found

    def any_of(self, names: list[str]) -> tuple[str, Path | None]:
        """Claims the first that can be claimed of some tasks.

        Tasks without a claim come first, so that few workers check the beats of others.
        """
        seen = self.look()
        for name in sorted(names, key=lambda n: "" in seen.get(n, {}).values()):
            claim = self._take(name, seen.get(name, {}))
            if claim is not None:
                return name, claim
        return names[0], None

    def _take(self, name: str, known: dict[int, str]) -> Path | None:
        for number, left in known.items():
            # Of one that has ended, a file system may not show the result for a while;
            # a loss of power may have taken it.
            claim = self._folder / ".".join(filter(None, (name, str(number), left)))
            if left != LOST and not (self._is_silent(claim) and self.give(claim, LOST)):
                return None
        number = 1 + max(known, default=0)
        mine = self._folder / f"{name}.{number}"
        try:
            self._disk.make(mine, new=True)
        except OSError:  # another one was first, or the session is over
            return None
        # What was seen may be long ago: this process may have been stopped since.
        now = self.look().get(name, {})
        last = max(now, default=0) == number and not now[number]
        if last and OVER not in now.values():
            return mine
        self._disk.remove_folder(mine)
        return None

    def give(self, claim: Path, left: str) -> bool:
        """Releases a claim, of this worker or of a silent one.

        Returns:
            Whether it was there; if not, another worker was first.
        """
        task, number, *_ = claim.name.split(".")
        over = claim.with_name(f"{task}.{number}.{left}")
        try:
            self._disk.rename(claim, over)
        except OSError:
            return False
        # Over a network its holder may know the folder by a number for some moments,
        # and not by name; what it wanted to rename is not there any more.
        for name in self._disk.names(over):
            if name.endswith(PARTIAL):
                self._disk.remove(over / name)
        return True

    def _is_silent(self, claim: Path) -> bool:
        try:
            beats = len(self._disk.read(claim / BEAT))
        except OSError:
            beats = 0
        then, since = self._seen.get(claim.name, (None, 0.0))
        if beats != then:
            self._seen[claim.name] = beats, self._clock()
            return False
        return self._clock() - since >= self._lease_s
