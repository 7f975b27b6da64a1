"""A study's folder as it is at one moment, while another process may write it."""

import time
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ..simulator.config.errors import StudyError
from ..simulator.config.progress import LEAST_PART
from ..simulator.trace import live, load
from ..simulator.trace.live import SILENT_S
from ..simulator.trace.manifest import NAME
from .frames import UNFINISHED, Study

ATTEMPTS = 5
"""Readings of a folder whose manifest is replaced meanwhile."""


class TaskSpeed(NamedTuple):
    """A task that is under way.

    Attributes:
        fraction: Part of it that is done, in [0, 1].
        commits: Commits that it has made in this session.
        seconds: Real seconds that it is at work.
    """

    fraction: float
    commits: int
    seconds: float

    @property
    def speed(self) -> float:
        """Commits a second of real time."""
        return self.commits / self.seconds if self.seconds > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """Real seconds until it ends, at the speed so far; None if not known."""
        return left_s(self.fraction, self.seconds)


class Watched:
    """A study and what it tells of itself.

    Args:
        study: Study as it was read.
        progress: How far it was at the last sign of life; None without one.
        now: Real seconds since 1970.
    """

    def __init__(
        self, study: Study, progress: dict[str, Any] | None, now: float
    ) -> None:
        self.study, self.manifest = study, study.manifest
        self.runs: list[dict[str, Any]] = self.manifest["runs"]
        mine = progress and progress.get("session") == self.manifest["session"]
        self._progress = progress if progress and mine else {}
        self.silent_s = max(0.0, now - self._progress.get("now", 0.0))
        """Real seconds since the last sign of life."""
        self._now = now

    @property
    def has_spoken(self) -> bool:
        """Whether there has been any sign of life in this session."""
        return "now" in self._progress

    @property
    def is_over(self) -> bool:
        """Whether all runs have ended, or the user has interrupted the study."""
        return self.study.complete or bool(self.manifest.get("interrupted"))

    @property
    def is_alive(self) -> bool:
        """Whether a process is at work, as far as can be seen."""
        return bool(not self.is_over and self.silent_s < SILENT_S)

    @property
    def ended(self) -> list[dict[str, Any]]:
        """Runs that have results."""
        return [run for run in self.runs if run["stop"] not in UNFINISHED]

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Runs that failed."""
        return [run for run in self.runs if run["stop"] == "failed"]

    @cached_property
    def tasks(self) -> dict[int, TaskSpeed]:
        """Tasks that are under way, by number."""
        if not self.is_alive:
            return {}
        told = self._progress.get("tasks", ())
        end = self._progress["now"]
        return {
            task: TaskSpeed(part, made, end - start) for task, part, made, start in told
        }

    @property
    def under_way(self) -> list[dict[str, Any]]:
        """Runs that are under way."""
        return [run for run in self.waiting_or_not if run.get("task") in self.tasks]

    @property
    def waiting_or_not(self) -> list[dict[str, Any]]:
        """Runs that have not ended, under way or not."""
        return [run for run in self.runs if run["stop"] == "incomplete"]

    @property
    def fraction(self) -> float:
        """Part of all runs that is done, in [0, 1]."""
        of_task = {number: task.fraction for number, task in self.tasks.items()}
        parts = (of_task.get(run.get("task", -1), 0.0) for run in self.waiting_or_not)
        over = len(self.runs) - len(self.waiting_or_not)
        return (over + sum(parts)) / max(len(self.runs), 1)

    @property
    def speed(self) -> float:
        """Commits a second of all tasks that are under way."""
        return sum(task.speed for task in self.tasks.values())

    @property
    def left_s(self) -> float | None:
        """Real seconds until the study ends, at its speed so far; None if not known."""
        if not self.is_alive or "fraction" not in self._progress:
            return None
        spent = self._progress["now"] - self._progress["since"]
        return left_s(self._progress["fraction"], spent)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Evaluations of runs that are under way; no rows where there are none."""
        session = self.manifest["session"]
        table = pd.DataFrame(live.evaluations(self.study.folder, session))
        if table.empty or not self.is_alive:
            return pd.DataFrame(columns=pd.Index(["run", "time", "commits"]))
        open_ = [run["run"] for run in self.waiting_or_not]
        mine = table.loc[table["run"].isin(open_)]
        mine = mine.drop_duplicates(["run", "time", "commits"])
        return mine.sort_values(["run", "time"], kind="stable", ignore_index=True)


def left_s(fraction: float, spent: float) -> float | None:
    """Returns seconds until something ends of which a part took so long.

    Args:
        fraction: Part that is done, in [0, 1].
        spent: Real seconds that it took.
    """
    return spent * (1 / fraction - 1) if fraction >= LEAST_PART else None


def look(folder: Path) -> Watched:
    """Reads a study's folder, which another process may write meanwhile.

    Raises:
        StudyError: There is no study in it, or it is damaged.
    """
    for attempt in range(ATTEMPTS):
        try:
            before = _identity(folder / NAME)
            progress = live.progress(folder)
            study = load(folder, quietly=True)
            # A session that ended in between has taken its journal with it.
            if _identity(folder / NAME) == before or attempt == ATTEMPTS - 1:
                return Watched(study, progress, time.time())
        except StudyError:
            if attempt == ATTEMPTS - 1:
                raise
        time.sleep(0.02 * attempt)
    raise AssertionError("the last attempt returns or raises")


def mark(folder: Path) -> tuple[Any, ...]:
    """Returns what differs as soon as more of a study's results can be read."""
    paths = [folder / NAME, *sorted(folder.glob("journal-*.log"))]
    return tuple((path.name, _identity(path)) for path in paths)


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
