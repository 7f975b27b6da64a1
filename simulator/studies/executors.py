"""Takes tasks to processes: this one, others on this machine, or any that are given."""

import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import as_completed
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from ..engine import processes
from ..files.study import DISK, Disk
from .entries import Done
from .planning import Task
from .progress import Progress, StudyProgress, TaskProgress, silent
from .worker import KILLED, failed, work

OnProgress = Callable[[int, TaskProgress], None]
"""Called with a task and how far it is."""
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

        Args:
            tasks: Tasks to execute, in this order as far as possible.
            folder: Folder of the study.
            report: Called with how far each task is.

        Raises:
            WorkerDiedError: a process was killed. What has not been yielded is to be
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

    Args:
        tasks: Tasks of a study.
        folder: Folder of the study.
        workers: Processes that execute them.
        progress: Called with how far all tasks are.
        disk: Disk of the folder.

    Raises:
        UserError: the folder cannot be written.
    """
    if not tasks:
        return
    tasks = in_order(tasks)
    sizes = np.array([len(task.runs) for task in tasks])
    all_runs = int(sizes.sum())
    done, made = np.zeros(len(tasks)), np.zeros(len(tasks), np.int64)
    failures = 0

    def report(index: int, now: TaskProgress) -> None:
        if done[index] >= 1:  # a message may come after the result
            return
        done[index], made[index] = now.fraction, max(now.commits, made[index])
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
    """This very process.

    Args:
        disk: Disk of the studies.
    """

    def __init__(self, disk: Disk = DISK) -> None:
        self._disk = disk

    def execute(
        self, tasks: Mapping[int, Task], folder: Path, report: OnProgress
    ) -> Iterator[tuple[int, Done]]:
        """Yields the result of each task, one after the other."""
        for index, task in tasks.items():
            yield index, work(task, folder, partial(report, index), self._disk)


class Processes:
    """Processes of this machine.

    Args:
        jobs: How many at most.
        meanwhile: Called once they are at work, in this one, which else only waits.
    """

    def __init__(
        self, jobs: int, meanwhile: Callable[[], object] = lambda: None
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
    mine = np.memmap(shared, np.float64, "r+").reshape(-1, len(TaskProgress._fields))[
        place
    ]
    mine[0] = STARTED

    def report(now: TaskProgress) -> None:
        mine[:] = max(now.fraction, STARTED), now.commits

    found = work(task, folder, report)
    mine[0] = 1.0
    return index, found


def chosen(
    tasks: list[Task], jobs: int, meanwhile: Callable[[], object] = lambda: None
) -> Workers:
    """Returns the executor of some tasks: of this machine, unless another is given.

    Args:
        tasks: Tasks of a study.
        jobs: Number of processes on this machine.
        meanwhile: Called in this process while others of this machine are at work.
    """
    if (others := processes.others()) is not None:
        return others
    return Here() if min(jobs, len(tasks)) <= 1 else Processes(jobs, meanwhile)


class _Watch:
    """Tells how far other processes are, a few times a second.

    Args:
        shared: New file for how far the processes' tasks are, a `TaskProgress` each.
        tasks: Their indices, in the order of that file.
        report: Called with the progress of each task.
    """

    def __init__(self, shared: Path, tasks: list[int], report: OnProgress) -> None:
        self._over, self._tasks = threading.Event(), tasks
        self._done: np.ndarray | None = np.memmap(
            shared, np.float64, "w+", shape=(len(tasks), len(TaskProgress._fields))
        )
        self._thread = threading.Thread(target=self._watch, args=(report,), daemon=True)
        self._thread.start()

    def _watch(self, report: OnProgress) -> None:
        while not self._over.wait(0.2) and self._done is not None:
            for index, mine in zip(self._tasks, self._done.tolist(), strict=True):
                report(index, TaskProgress(mine[0], int(mine[1])))

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
