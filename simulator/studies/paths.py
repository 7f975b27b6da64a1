"""Paths in the folder of a study while it is run."""

from pathlib import Path

from ..files.study.study import LOCKS, done_by

DATA = "data.npz"
"""Arrays that were given in place of a data set."""
TUNING = "tuning"
"""Folder, in that of a comparison, of the study of its trials."""
CHECKPOINTS = ".checkpoints"
"""Folder, in that of a study, of the states of its tasks while it is run."""
CLAIMS = ".shared-"
"""Beginning of the name of the folder, in that of a study, of a session's claims."""


def task_name(number: int) -> str:
    """Returns the name of a task's parts among those of the study."""
    return f"{number:05d}"


def done_of(folder: Path, session: int, task: int) -> Path:
    """Returns the file in which a task notes its result, before its study does."""
    return folder / LOCKS / f"{task_name(task)}{done_by(session)}"


def claims_of(folder: Path, session: int) -> Path:
    """Returns the folder in which processes that share a session claim its tasks."""
    return folder / f"{CLAIMS}{session}"


def checkpoint_of(folder: Path, task: int) -> Path:
    """Returns the path of a task's state."""
    return folder / CHECKPOINTS / task_name(task)
