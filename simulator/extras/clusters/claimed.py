"""The work of one process at a task that it has claimed, as `claims` says."""

import time
from collections.abc import Callable
from pathlib import Path

from ...files.study import DISK, Disk
from ...files.study.disk import explained, read_journal
from ...studies import origins
from ...studies.executors import KILLED, ONE_AT_A_TIME, attempt, failed, is_over, leave
from ...studies.planning import (
    LOCKS,
    Done,
    Task,
    checkpoint_of,
    claims_of,
    done_of,
    task_name,
)
from ...studies.progress import TaskProgress
from .claims import LOST, OVER, PACE, Claimed, Claims, LostError

MOST_CLAIMS = 20
"""Claims of a task after which it counts as the killer of its takers."""


def execute(
    task: Task,
    path: Path,
    claim: Path,
    progress: Callable[[TaskProgress], None],
    disk: Disk,
) -> int:
    """Executes a task that is claimed, and leaves its result.

    Args:
        task: Task of a study.
        path: Path of its folder.
        claim: Folder of the claim.
        progress: Called with how far it is.
        disk: Disk of the folder.

    Returns:
        Its runs; 0 if another taker had ended it before it was claimed.
    """
    if disk.exists(done_of(path, task.session, task.number)):
        return 0
    mine = Claimed(disk, claim)
    if int(claim.suffix[1:]) > MOST_CLAIMS:
        found = failed(task, path, KILLED, mine)
    else:
        found = attempt(task, path, progress, mine)
    with explained(path):
        disk.make(path / LOCKS)
    leave(found, task, path, mine)
    with explained(path):
        mine.remove(checkpoint_of(path, task.number))
    return len(task.runs)


def take_one(
    task: Task, folder: Path, progress: Callable[[TaskProgress], None]
) -> Done:
    """Executes a task of a study that another process runs, as `worker.work` does.

    A cluster gives a task to another worker when it has lost the one before. That one
    may live, or be stopped: its claim goes, without which it can change nothing.

    Args:
        task: Task of a study.
        folder: Folder of the study.
        progress: Called with how far it is.

    Raises:
        StudyError: as `worker.work`, or the task was given to another worker.
    """
    origins.check_worker(task.program)
    place, name = claims_of(folder, task.session), task_name(task.number)
    claims = Claims(place, DISK, time.monotonic, PACE.lease_s)
    done = done_of(folder, task.session, task.number)
    with ONE_AT_A_TIME:
        while not (known := read_journal(DISK, done, {}))[0]:
            if not DISK.exists(place):
                raise is_over(folder)
            with explained(folder):
                DISK.make(folder / LOCKS)
                # A process of a study that was killed may still be at this task.
                with DISK.lock(folder / LOCKS / name, wait=True):
                    pass
            for number, left in claims.look().get(name, {}).items():
                if not left:
                    claims.give(place / f"{name}.{number}", LOST)
            _, claim = claims.any_of([name])
            if claim is None:  # it has ended, which a file system may show later
                time.sleep(PACE.beat_s)
                continue
            ended = LOST
            try:
                execute(task, folder, claim, progress, DISK)
                ended = OVER
            except LostError:
                raise is_over(folder) from None
            finally:
                claims.give(claim, ended)
    return Done(*known)
