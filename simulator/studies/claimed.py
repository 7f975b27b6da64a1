"""The work of one process at a task that it has claimed, as `claims` says."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from ..trace import DISK, Disk, StudyError, journal
from ..trace.disk import LockedError, explained
from . import origins
from .claims import LOST, OVER, PACE, Claimed, Claims, LostError, Pace, heart
from .entries import Done
from .paths import LOCKS, checkpoint_of, claims_of, done_of, task_name
from .planning import Task
from .progress import TaskProgress
from .worker import KILLED, ONE_AT_A_TIME, attempt, failed, is_over, leave

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
    task: Task,
    folder: Path,
    progress: Callable[[TaskProgress], None],
    pace: Pace = PACE,
    disk: Disk = DISK,
) -> Done:
    """Executes a task of a study that another process runs, as `worker.work` does.

    A process that was at the task may be stopped, with the task's lock in its hands.
    When it has been silent for a while, it is taken over and can change nothing.

    Args:
        task: Task of a study.
        folder: Folder of the study.
        progress: Called with how far it is.
        pace: Times of this process.
        disk: Disk of the folder.

    Raises:
        StudyError: as `worker.work`.
    """
    origins.check_worker(task.program or {})
    place, name = claims_of(folder, task.session), task_name(task.number)
    claims = Claims(place, disk, time.monotonic, pace.lease_s)
    with ONE_AT_A_TIME, contextlib.ExitStack() as held:
        alone, beaten = False, False
        while True:
            if not disk.exists(place):
                raise is_over(folder)
            with explained(folder), contextlib.suppress(LockedError):
                disk.make(folder / LOCKS)
                if not alone and not beaten:
                    held.enter_context(disk.lock(folder / LOCKS / name))
                    alone = True
            known = journal.read(disk, done_of(folder, task.session, task.number), {})
            if known.ends:  # by another process, while this one waited
                return Done(*known)
            there, claim = claims.look().get(name, {}), None
            if alone:  # who claims it is dead, as the lock is free
                for number in (number for number, left in there.items() if not left):
                    claims.give(place / f"{name}.{number}", LOST)
            if alone or there:  # else a process of an earlier session is at it
                _, claim = claims.any_of([name])
            if claim is None:
                time.sleep(pace.beat_s)
                continue
            ended = LOST
            try:
                with heart(disk, claim, pace.beat_s):
                    execute(task, folder, claim, progress, disk)
                    ended = OVER
            except (StudyError, LostError):
                if disk.exists(claim):
                    raise
                held.close()  # it was taken over: this process was silent for too long
                alone, beaten = False, True
            finally:
                claims.give(claim, ended)
