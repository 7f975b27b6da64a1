"""The work of one process: a task's runs executed and written, or the failure noted."""

import contextlib
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..engine import device
from ..files import inputs
from ..files.study import DISK, Disk, Writer, journal
from ..files.study.disk import explained, replace
from ..files.study.parts import remove_parts
from ..files.study.study import journal_of
from ..parts import functions
from ..parts.errors import StudyError, UserError
from ..parts.text import one_line
from . import origins
from .checkpoints import TaskCheckpoint
from .entries import Done, Ends
from .paths import LOCKS, done_of, task_name
from .planning import Task
from .progress import TaskProgress

FAILURES = "failures"
"""Folder, in that of a study, for what its author may want to report."""
TIMELINES = ".timelines"
"""Folder, in that of a study, of timelines that its runs share while it is run."""

KILLED = "its process was killed, perhaps because memory ran out"

Progress = Callable[[TaskProgress], None]
"""Called with how far a task is."""
ONE_AT_A_TIME = threading.Lock()
"""A process may have several threads; they execute one task at a time."""


def work(
    task: Task,
    folder: Path,
    progress: Progress = lambda _: None,
    disk: Disk = DISK,
) -> Done:
    """Executes one task and writes its tables.

    Whatever goes wrong in it ends its own runs alone, as failed.

    Args:
        task: Task of a study.
        folder: Folder of the study.
        progress: Called with how far it is.
        disk: Disk of the folder.

    Returns:
        What is to be known of the end of each run, and the files of their rows.

    Raises:
        StudyError: the disk is full, the folder cannot be written, or the session
            that planned the task is over, or this process has another program.
    """
    origins.check_worker(task.program)
    with ONE_AT_A_TIME, contextlib.ExitStack() as held:
        with explained(folder):
            disk.make(folder / LOCKS)
            # A process of a study that was killed may still be at this task.
            lock = disk.lock(folder / LOCKS / task_name(task.number), wait=True)
            held.enter_context(lock)
            if not disk.exists(journal_of(folder, task.session)):
                raise is_over(folder)
        done = done_of(folder, task.session, task.number)
        known = journal.read(disk, done, {})
        if known.ends:  # by another process, while this one waited for the lock
            return Done(*known)
        found = attempt(task, folder, progress, disk)
        leave(found, task, folder, disk)
        return found


def is_over(folder: Path) -> StudyError:
    """Returns why nothing more is done for a session of a study."""
    return StudyError(
        f"{folder}: must be written by the process that runs the study, but that has "
        f"ended or another one continues it"
    )


def leave(found: Done, task: Task, folder: Path, disk: Disk) -> None:
    """Writes the result of a task, all of it or nothing, before its study notes it."""
    with explained(folder):
        record = journal.line({"ends": found.ends, "parts": found.files})
        place = done_of(folder, task.session, task.number)
        replace(disk, place, record, durable=False)


def attempt(task: Task, folder: Path, progress: Progress, disk: Disk) -> Done:
    """Executes a task whose lock is held, or that is claimed."""
    if task.inputs is not None:
        functions.keep(task.inputs.objects)
    keeper = TaskCheckpoint(task, folder, disk)
    saved = keeper.saved()
    stays = saved["writer"]["parts"] if saved else None
    remove_parts(disk, folder, task_name(task.number), but=stays)
    try:
        with inputs.held(task.inputs):
            return _execute(task, folder, progress, disk, keeper, saved)
    except StudyError:
        raise
    except UserError as error:
        if error.__cause__ is not None:  # code of the user's own, perhaps: where in it
            _noted(task, folder, disk)
        return failed(task, folder, str(error), disk)
    except Exception as error:  # a defect must not take the other runs down
        where = _noted(task, folder, disk)
        reason = one_line(f"{type(error).__name__}: {error}")
        return failed(task, folder, f"{reason[:200]} (see {where})", disk)


def _noted(task: Task, folder: Path, disk: Disk) -> Path:
    """Writes the traceback of what a task has raised; returns its file."""
    where = folder / FAILURES / f"{task_name(task.number)}.txt"
    with explained(folder):
        disk.make(where.parent)
        disk.write(where, traceback.format_exc().encode())
    return where


def _execute(
    task: Task,
    folder: Path,
    progress: Progress,
    disk: Disk,
    keeper: TaskCheckpoint,
    saved: dict[str, Any] | None,
) -> Done:
    device.before_import()
    from ..engine import simulation

    device.use_cache()
    device.release_programs()
    writer = Writer(folder, task_name(task.number), disk)
    prepared = simulation.prepare_together(task.runs, task.batches)
    timelines = folder / TIMELINES if task.keeps_timelines else None
    found = simulation.execute(
        prepared,
        task.mode,
        writer,
        lambda fraction, commits: progress(TaskProgress(fraction, commits)),
        timelines=timelines,
        keeper=keeper,
        saved=saved,
    )
    writer.flush()
    ends: Ends = {
        run.number: {**end, "rows": writer.rows.get(run.number, {})}
        for run, end in zip(task.runs, found, strict=True)
    }
    return Done(ends, writer.parts)


def failed(task: Task, folder: Path, reason: str, disk: Disk = DISK) -> Done:
    """Returns the ends of a failed task's runs; removes what it has written."""
    remove_parts(disk, folder, task_name(task.number))
    end = {"stop": "failed", "stop_reason": reason}
    return Done({run.number: dict(end) for run in task.runs}, {})
