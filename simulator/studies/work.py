"""What one process does: a task's runs, executed and written, or why they failed."""

import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from simulator import inputs
from simulator.engine import device
from simulator.scenario.errors import StudyError, UserError
from simulator.scenario.suggestions import one_line
from simulator.studies.folder import Ends, task_name
from simulator.studies.planning import Task
from simulator.trace import Writer, remove_parts

FAILURES = "failures"
"""Folder, in that of a study, for what its author may want to report."""
TIMELINES = ".timelines"
"""Folder, in that of a study, of timelines that its runs share while it is run."""

Progress = Callable[[float], None]
"""Called with the fraction of a task that is done."""
LOCKS = ".locks"
"""Folder, in that of a study, of its tasks' locks while it is run."""

_one_at_a_time = threading.Lock()
"""A cluster's worker may have several threads; they execute one task at a time."""


def work(task: Task, folder: Path, progress: Progress = lambda _: None) -> Ends:
    """Executes one task and writes its tables.

    Whatever goes wrong in it ends its own runs alone, as failed.

    Args:
        task: of a study.
        folder: of the study.
        progress: hears the fraction that is done.

    Returns:
        What is to be known of the end of each run.

    Raises:
        StudyError: the disk is full, or the folder cannot be written.
    """
    # A process of a study that was killed may still be at this task.
    lock = FileLock(_made(folder / LOCKS) / task_name(task.number))
    with _one_at_a_time, lock:
        remove_parts(folder, {task_name(task.number)})
        try:
            with inputs.held(task.inputs):
                return _execute(task, folder, progress)
        except StudyError:
            raise
        except UserError as error:
            return failed(task, folder, str(error))
        except Exception as error:  # a defect must not take the other runs down
            where = _made(folder / FAILURES) / f"{task_name(task.number)}.txt"
            where.write_text(traceback.format_exc(), encoding="utf-8")
            reason = one_line(f"{type(error).__name__}: {error}")
            return failed(task, folder, f"{reason[:200]} (see {where})")


def _execute(task: Task, folder: Path, progress: Progress) -> Ends:
    device.before_import()
    from simulator import simulation

    device.use_cache()
    writer = Writer(folder, task_name(task.number))
    prepared = [simulation.prepare(run) for run in task.runs]
    timelines = folder / TIMELINES if task.keeps_timelines else None
    ends = simulation.execute(
        prepared, task.mode, writer, progress, timelines=timelines
    )
    writer.flush()
    return {run.number: end for run, end in zip(task.runs, ends, strict=True)}


def failed(task: Task, folder: Path, reason: str) -> Ends:
    """Returns the ends of a failed task's runs; removes what it has written."""
    remove_parts(folder, {task_name(task.number)})
    end = {"stop": "failed", "stop_reason": reason}
    return {run.number: dict(end) for run in task.runs}


def _made(folder: Path) -> Path:
    """Returns a folder of the study, made if need be.

    Raises:
        StudyError: the disk is full, or the study's folder is gone.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise StudyError(
            f"{folder.parent}: the study must be written, but {error.strerror}; make "
            f"room, then stalesim resume {folder.parent}"
        ) from error
    return folder
