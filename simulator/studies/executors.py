"""Executes tasks: in this process, in others of this machine, or in any given ones."""

import contextlib
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import as_completed
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from ..engine import device, processes
from ..files import inputs
from ..files.study import DISK, Disk, Writer, checkpoint, parts
from ..files.study.disk import explained, journal_line, read_journal, replace
from ..files.study.parts import remove_parts
from ..files.study.study import journal_of
from ..parts import functions
from ..parts.errors import StudyError, UserError, one_line
from ..parts.json_text import Tree
from . import origins
from .planning import (
    LOCKS,
    Done,
    Ends,
    Task,
    checkpoint_of,
    content,
    done_of,
    task_name,
)
from .progress import Progress, StudyProgress, silent

FORMAT = 1
"""Version of a state: a number that grows when a run would continue otherwise."""


class TaskCheckpoint:
    """Keeps the state of a task, and finds it again."""

    def __init__(self, task: Task, folder: Path, disk: Disk) -> None:
        self._task, self._folder, self._disk = task, folder, disk
        self._since = time.monotonic()
        runs = [content(run) for run in task.runs]
        self._about = {"runs": runs, "mode": task.mode, "format": FORMAT}

    def due(self) -> bool:
        """Returns whether it is time to save the state again."""
        every = self._task.checkpoint_s
        return every is not None and time.monotonic() - self._since >= every

    def save(self, state: Tree) -> None:
        """Keeps a state in place of the last one.

        Args:
            state: State of the task, with that of its `writer`, whose files must all
                survive a loss of power as well.
        """
        whole = {**self._about, **state}
        for name, mine in state["writer"]["parts"].items():
            parts.sync(self._disk, self._folder, name, mine)
        checkpoint.write(
            self._disk, checkpoint_of(self._folder, self._task.number), whole
        )
        self._since = time.monotonic()

    def saved(self) -> Tree | None:
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


FAILURES = "failures"
"""Folder, in a study's folder, for files that its author may want to report."""

KILLED = "its process was killed, perhaps because memory ran out"

OnTask = Callable[[float, int], None]
"""Called with the fraction of a task that is done, in [0, 1], and the commits that were
made in this session, of all of its runs."""
ONE_AT_A_TIME = threading.Lock()
"""A process may have several threads; they execute one task at a time."""


def work(
    task: Task,
    folder: Path,
    progress: OnTask = lambda *_: None,
    disk: Disk = DISK,
) -> Done:
    """Executes one task and writes its tables.

    Whatever goes wrong in it ends its own runs alone, as failed.

    Raises:
        StudyError: the disk is full, the folder cannot be written, or the session
            that planned the task is over.
    """
    with ONE_AT_A_TIME, contextlib.ExitStack() as held:
        with explained(folder):
            disk.make(folder / LOCKS)
            # A process of a study that was killed may still be at this task.
            lock = disk.lock(folder / LOCKS / task_name(task.number), wait=True)
            held.enter_context(lock)
            if not disk.exists(journal_of(folder, task.session)):
                raise is_over(folder)
        done = done_of(folder, task.session, task.number)
        ends, files = read_journal(disk, done, {})
        if ends:  # by another process, while this one waited for the lock
            return Done(ends, files)
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
        record = journal_line({"ends": found.ends, "parts": found.files})
        place = done_of(folder, task.session, task.number)
        replace(disk, place, record, durable=False)


def attempt(task: Task, folder: Path, progress: OnTask, disk: Disk) -> Done:
    """Executes a task whose lock is held, or that is claimed."""
    if task.inputs is not None:
        functions.keep(task.inputs.objects)
    keeper = TaskCheckpoint(task, folder, disk)
    saved = keeper.saved()
    stays = saved["writer"]["parts"] if saved else {}
    mine = task_name(task.number)
    remove_parts(disk, folder, stays, lambda writer: writer == mine)
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
    progress: OnTask,
    disk: Disk,
    keeper: TaskCheckpoint,
    saved: Tree | None,
) -> Done:
    device.before_import()
    from ..engine import simulation

    device.use_cache()
    device.release_programs()
    writer = Writer(folder, task_name(task.number), disk)
    prepared = simulation.prepare_together(task.runs, task.batches)
    found = simulation.execute(
        prepared,
        task.mode,
        writer,
        progress,
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
    """Returns the ends of a failed task's runs; removes its files."""
    mine = task_name(task.number)
    remove_parts(disk, folder, {}, lambda writer: writer == mine)
    end = {"stop": "failed", "stop_reason": reason}
    return Done({run.number: dict(end) for run in task.runs}, {})


OnProgress = Callable[[int, float, int], None]
"""Called with a task and how far it is, as `OnTask`."""
STARTED = 1e-9
"""Fraction of a task that was started and has not done anything yet."""


class WorkerDiedError(Exception):
    """A process was killed.

    Args:
        started: Tasks that it was at, one of which has killed it, as far as known.
    """

    def __init__(self, started: list[int]) -> None:
        super().__init__(started)
        self.started = started


class Workers(Protocol):
    """Processes that execute tasks."""

    def execute(
        self, tasks: Mapping[int, Task], folder: Path, report: OnProgress
    ) -> Iterator[tuple[int, Done]]:
        """Yields the result of each task as it ends.

        Raises:
            WorkerDiedError: a process was killed. Tasks without a result must be
                executed again.
            UserError: the folder cannot be written.
        """
        ...


def execute(
    tasks: list[Task],
    folder: Path,
    workers: Workers,
    progress: Progress = silent,
    disk: Disk = DISK,
) -> Iterator[Done]:
    """Executes tasks; yields the result of each as it ends.

    The longest are started first, so that no process ends long after the others; among
    them one of each variant, so that processes compile different programs, and later
    find those of the others in the cache. Where
    a process is killed, the tasks that it may have been at are executed one by one; the
    one that kills its process again has failed.
    """
    if not tasks:
        return
    tasks = in_order(tasks)
    sizes = np.array([len(task.runs) for task in tasks])
    all_runs = int(sizes.sum())
    done, made = np.zeros(len(tasks)), np.zeros(len(tasks), np.int64)
    failures = 0

    def report(index: int, fraction: float, commits: int) -> None:
        if done[index] >= 1:  # a message may come after the result
            return
        done[index], made[index] = fraction, max(commits, made[index])
        tell()

    def tell() -> None:
        under_way = np.flatnonzero((done > 0) & (done < 1))
        label = tasks[under_way[0]].runs[0].label if under_way.size else ""
        part, ended = float(done @ sizes) / all_runs, int(sizes[done >= 1].sum())
        commits = int(made.sum())
        progress(StudyProgress(part, ended, all_runs, label, commits, failures))

    def note(index: int, found: Done) -> None:
        nonlocal failures
        failures += sum(end["stop"] == "failed" for end in found.ends.values())
        done[index] = 1.0
        tell()

    left = dict(enumerate(tasks))
    while left:
        try:
            for index, found in workers.execute(dict(left), folder, report):
                del left[index]
                note(index, found)
                yield found
        except WorkerDiedError as death:
            # Which of them killed the process is not known: each gets one of its own.
            for index in [i for i in death.started if i in left] or list(left):
                found = _alone(workers, index, left.pop(index), folder, report, disk)
                note(index, found)
                yield found


def in_order(tasks: list[Task]) -> list[Task]:
    """Returns tasks as they are started."""
    of_variant: Counter[str] = Counter()
    places = []
    for task in tasks:
        variant = task.runs[0].variant
        # A task takes about as long as it has runs.
        places.append((-len(task.runs), of_variant[variant]))
        of_variant[variant] += 1
    return [tasks[i] for i in sorted(range(len(tasks)), key=places.__getitem__)]


def _alone(
    workers: Workers,
    index: int,
    task: Task,
    folder: Path,
    report: OnProgress,
    disk: Disk,
) -> Done:
    """Executes a task in a process of its own; if that is killed, it was the task."""
    try:
        ((_, found),) = workers.execute({index: task}, folder, report)
    except WorkerDiedError:
        found = failed(task, folder, KILLED, disk)
    return found


class Here:
    """This very process."""

    def __init__(self, disk: Disk = DISK) -> None:
        self._disk = disk

    def execute(
        self, tasks: Mapping[int, Task], folder: Path, report: OnProgress
    ) -> Iterator[tuple[int, Done]]:
        """Yields the result of each task, one after the other."""
        for index, task in tasks.items():
            yield index, work(task, folder, partial(report, index), self._disk)


class Processes:
    """Processes of this machine."""

    def __init__(
        self, jobs: int, meanwhile: Callable[[], object] | None = None
    ) -> None:
        self._jobs, self._meanwhile = jobs, meanwhile

    def execute(
        self, tasks: Mapping[int, Task], folder: Path, report: OnProgress
    ) -> Iterator[tuple[int, Done]]:
        """Yields the result of each task as it ends."""
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        copies = processes.pool(min(self._jobs, len(tasks)))
        futures = []
        with tempfile.TemporaryDirectory(prefix="stalesim-") as scratch:
            shared = Path(scratch) / "progress"
            watch = _Watch(shared, list(tasks), report)
            path = folder.absolute()  # its processes stay, where they once were started
            try:
                for place, (index, task) in enumerate(tasks.items()):
                    call = (place, index, task, path, shared)
                    futures.append(copies.submit(_work_elsewhere, *call))
                if self._meanwhile is not None:
                    self._meanwhile()
                for future in as_completed(futures):
                    yield future.result()
            except TerminatedWorkerError:
                raise WorkerDiedError(watch.started()) from None
            finally:
                watch.stop()
                if not all(future.done() for future in futures):
                    copies.shutdown(kill_workers=True)


def _work_elsewhere(
    place: int, index: int, task: Task, folder: Path, shared: Path
) -> tuple[int, Done]:
    origins.check_worker(task.program)
    mine = np.memmap(shared, np.float64, "r+").reshape(-1, 2)[place]
    mine[0] = STARTED

    def report(fraction: float, commits: int) -> None:
        mine[:] = max(fraction, STARTED), commits

    found = work(task, folder, report)
    mine[0] = 1.0
    return index, found


def chosen(
    tasks: list[Task], jobs: int, meanwhile: Callable[[], object] | None = None
) -> Workers:
    """Returns the executor of some tasks: this machine's, unless another is set."""
    if (others := processes.others()) is not None:
        return others
    return Here() if min(jobs, len(tasks)) <= 1 else Processes(jobs, meanwhile)


class _Watch:
    """Tells how far other processes are, a few times a second.

    Args:
        shared: New file for how far the processes' tasks are: fraction, commits.
        tasks: Their indices, in the order of that file.
        report: Called with the progress of each task.
    """

    def __init__(self, shared: Path, tasks: list[int], report: OnProgress) -> None:
        self._over, self._tasks = threading.Event(), tasks
        self._done: np.ndarray | None = np.memmap(
            shared, np.float64, "w+", shape=(len(tasks), 2)
        )
        self._thread = threading.Thread(target=self._watch, args=(report,), daemon=True)
        self._thread.start()

    def _watch(self, report: OnProgress) -> None:
        while not self._over.wait(0.2) and self._done is not None:
            for index, mine in zip(self._tasks, self._done.tolist(), strict=True):
                report(index, mine[0], int(mine[1]))

    def started(self) -> list[int]:
        """Returns the tasks that were started."""
        if self._done is None:
            return []
        return [self._tasks[place] for place in np.flatnonzero(self._done[:, 0] > 0)]

    def stop(self) -> None:
        """Stops watching and lets go of the file, so that its folder can be removed."""
        self._over.set()
        self._thread.join()
        self._done = None
