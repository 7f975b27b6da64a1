"""Paths in the folder of a study while it is run."""

from pathlib import Path

DATA = "data.npz"
"""Arrays that were given in place of a data set."""
CHECKPOINTS = ".checkpoints"
"""Folder, in that of a study, of the states of its tasks while it is run."""
LOCKS = ".locks"
"""Folder, in that of a study, of its tasks' locks, and of what tasks have left, while
it is run. A task is done once in a session: a process that was given up, but still
lives, would otherwise remove what another one has written since."""


def task_name(number: int) -> str:
    """Returns the name of a task's parts among those of the study."""
    return f"{number:05d}"


def done_of(folder: Path, session: int, task: int) -> Path:
    """Returns the file in which a task notes its result, before its study does."""
    return folder / LOCKS / f"{task_name(task)}{done_by(session)}"


def done_by(session: int) -> str:
    """Returns how the names of the results end that the tasks of a session note."""
    return f"-{session}.done"


def checkpoint_of(folder: Path, task: int) -> Path:
    """Returns the path of a task's state."""
    return folder / CHECKPOINTS / task_name(task)
