"""The state of a task, kept every so often, so that a kill costs minutes, not hours."""

import time
from pathlib import Path
from typing import Any

from ..files.study import Disk, checkpoint, parts
from ..parts.errors import StudyError
from .entries import content
from .paths import checkpoint_of
from .planning import Task

FORMAT = 1
"""What a state means: a number that goes up when a run would continue otherwise."""


class TaskCheckpoint:
    """Keeps the state of a task, and finds it again.

    Args:
        task: Task of a study.
        folder: Folder of the study.
        disk: Disk of the folder.
    """

    def __init__(self, task: Task, folder: Path, disk: Disk) -> None:
        self._task, self._folder, self._disk = task, folder, disk
        self._since = time.monotonic()
        runs = [content(run) for run in task.runs]
        self._about = {"runs": runs, "mode": task.mode, "format": FORMAT}

    def due(self) -> bool:
        """Says whether it is time to keep the state again."""
        every = self._task.checkpoint_s
        return every is not None and time.monotonic() - self._since >= every

    def save(self, state: dict[str, Any]) -> None:
        """Keeps a state in place of the last one.

        Args:
            state: State of the task, with that of its `writer`, all of whose parts
                must survive a loss of power as well.

        Raises:
            StudyError: the disk is full, or the folder cannot be written.
        """
        whole = {**self._about, **state}
        for name, mine in state["writer"]["parts"].items():
            parts.sync(self._disk, self._folder, name, mine)
        checkpoint.write(
            self._disk, checkpoint_of(self._folder, self._task.number), whole
        )
        self._since = time.monotonic()

    def saved(self) -> dict[str, Any] | None:
        """Returns the state that was kept last; None if there is none that fits.

        It must be of the same runs, and all parts that they had written must be there.
        """
        path = checkpoint_of(self._folder, self._task.number)
        state = checkpoint.read(self._disk, path)
        if state is None or {key: state.get(key) for key in self._about} != self._about:
            return None
        try:
            for name, mine in state["writer"]["parts"].items():
                for file, seal in mine.items():
                    parts.read(self._disk, self._folder / name / file, seal)
        except StudyError:
            return None
        return state
