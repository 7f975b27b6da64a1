"""What a study tells of itself while it is run, for those who watch it.

Small files in a folder `.live`: how far all is (`progress-ID.json` of each process that
leads it, replaced about once a second), and a file per task under way, a line for each
of its evaluations. They go when the study ends. No run reads them, and an error in
writing them is passed over: results stand in the tables and the journal alone.
"""

import contextlib
import json
import shutil
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .disk import PARTIAL

LIVE = ".live"
"""Folder, in that of a study, of what it tells while it is run."""
PROGRESS = "progress-"
ROWS = ".jsonl"
EVERY_S = 1.0
"""Real seconds from one writing of a file to the next."""
SILENT_S = 15.0
"""Real seconds without a sign of life after which a process counts as gone."""


class Beacon:
    """Notes how far a study is, every second until it is stopped.

    It is written also where nothing is heard, which shows that the process lives.

    Args:
        folder: Folder of the study.
        session: Session of the study.
        alone: Whether no other process leads the study.
    """

    def __init__(self, folder: Path, session: int, *, alone: bool = True) -> None:
        if alone:
            clear(folder)  # what a session has left that was killed
        self._folder, self._alone = folder, alone
        self._file = folder / LIVE / f"{PROGRESS}{uuid.uuid4().hex}.json"
        self._since, self._last = time.time(), {"session": session}
        self._started: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def note(self, progress: Mapping[str, Any]) -> None:
        """Notes how far the study is, a `StudyProgress` as a mapping."""
        since = (self._started.setdefault(t[0], time.time()) for t in progress["tasks"])
        tasks = [[*t, start] for t, start in zip(progress["tasks"], since, strict=True)]
        self._last = {"session": self._last["session"], **progress, "tasks": tasks}

    def stop(self) -> None:
        """Ends the notes, and removes them."""
        self._over.set()
        self._thread.join()
        if self._alone:
            clear(self._folder)
            return
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)
            self._file.parent.rmdir()  # if it is empty

    def _go_on(self) -> None:
        while not self._over.wait(EVERY_S):
            noted = {**self._last, "since": self._since, "now": time.time()}
            partial = self._file.with_name(self._file.name + PARTIAL)
            with contextlib.suppress(OSError):
                self._file.parent.mkdir(exist_ok=True)
                partial.write_text(json.dumps(noted))
                partial.replace(self._file)


class LiveRows:
    """Notes the evaluations of a task as they come, at most once a second.

    Args:
        folder: Folder of the study.
        task: Name of the task.
        session: Session of the study.
    """

    def __init__(self, folder: Path, task: str, session: int) -> None:
        self._file = folder / LIVE / f"{task}-{session}{ROWS}"
        self._lines: list[str] = []
        self._since = time.monotonic()

    def add(self, columns: Mapping[str, Any]) -> None:
        """Adds rows of the table of evaluations, as `Writer.append` takes them."""
        for cells in zip(*columns.values(), strict=True):
            row = {k: cell.item() for k, cell in zip(columns, cells, strict=True)}
            self._lines.append(json.dumps(row))
        if time.monotonic() - self._since < EVERY_S:
            return
        self._since = time.monotonic()
        # The folder is made by who runs the study; without it nothing is watched.
        with contextlib.suppress(OSError), self._file.open("a") as file:
            file.write("".join(f"{line}\n" for line in self._lines))
            self._lines.clear()


def clear(folder: Path) -> None:
    """Removes what a study has told of itself."""
    shutil.rmtree(folder / LIVE, ignore_errors=True)


def progress(folder: Path) -> dict[str, Any] | None:
    """Returns how far a study was when it was last noted; None if nothing is known.

    Keys: session, since and now (real seconds since 1970), and, once anything is heard,
    those of `StudyProgress`; a task is a list of its number, the part of it
    that is done, commits, and since when it was at work. Of several processes that lead
    it, those that live by the clock of the last one have their tasks and commits added.
    """
    found: list[dict[str, Any]] = []
    for path in (folder / LIVE).glob(f"{PROGRESS}*.json"):
        with contextlib.suppress(OSError, ValueError):
            one = json.loads(path.read_text())
            found += [one] if isinstance(one, dict) else []
    if len(found) < 2:
        return found[0] if found else None
    last = max(found, key=lambda one: (one["session"], one["now"]))
    told = [
        one
        for one in found
        if one["session"] == last["session"] and one["now"] > last["now"] - SILENT_S
    ]
    heard = max(told, key=lambda one: one.get("fraction", -1.0))
    return {
        **heard,
        "now": last["now"],
        "since": min(one["since"] for one in told),
        "commits": sum(one.get("commits", 0) for one in told),
        "tasks": [task for one in told for task in one.get("tasks", ())],
    }


def evaluations(folder: Path, session: int) -> Iterator[dict[str, Any]]:
    """Yields the evaluations of tasks that are under way, or have just ended.

    Args:
        folder: Folder of the study.
        session: Session of the study; what an older one has left is passed over.

    Yields:
        LiveRows of the table of evaluations, by column. A line that is not whole yet is
        left for the next time.
    """
    for path in sorted((folder / LIVE).glob(f"*-{session}{ROWS}")):
        try:
            *lines, _ = path.read_text().split("\n")
        except OSError:  # the study has just ended
            continue
        for line in lines:
            with contextlib.suppress(ValueError):
                yield json.loads(line)
