"""Takes tasks to processes: this one, others on this machine, or a Dask cluster."""

import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from simulator.scenario.errors import UserError
from simulator.studies.folder import Ends
from simulator.studies.planning import Task
from simulator.studies.work import failed, work

Progress = Callable[[float], None]
"""Called with the fraction of the whole study that is done."""
BEGUN = 1e-9
"""Fraction of a task that has begun and not done anything yet."""
KILLED = "its process was killed, perhaps because memory ran out"
CONNECT_S = 20
"""Real seconds to wait for a scheduler."""


def execute(
    tasks: list[Task],
    folder: Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Progress = lambda _: None,
) -> Iterator[Ends]:
    """Executes tasks; yields the ends of each one's runs as it ends.

    The longest are begun first, so that no process ends long after the others.

    Args:
        tasks: of a study.
        folder: of the study.
        jobs: processes on this machine.
        scheduler: address of a Dask scheduler, whose workers are used instead.
        progress: hears the fraction of all tasks that is done.

    Raises:
        UserError: the folder cannot be written, or the scheduler not be reached.
    """
    if not tasks:
        return
    tasks = sorted(tasks, key=lambda task: -len(task.runs))
    weights = np.array([len(task.runs) for task in tasks], np.float64)
    weights /= weights.sum()
    if scheduler is not None:
        yield from _on_cluster(tasks, folder, scheduler, weights, progress)
    elif min(jobs, len(tasks)) == 1:
        yield from _here(tasks, folder, weights, progress)
    else:
        yield from _on_processes(tasks, folder, jobs, weights, progress)


def _here(
    tasks: list[Task], folder: Path, weights: np.ndarray, progress: Progress
) -> Iterator[Ends]:
    done = np.zeros(len(tasks))
    for index, task in enumerate(tasks):

        def hear(fraction: float, index: int = index) -> None:
            done[index] = fraction
            progress(float(done @ weights))

        yield work(task, folder, hear)
        hear(1.0)


def _on_processes(
    tasks: list[Task],
    folder: Path,
    jobs: int,
    weights: np.ndarray,
    progress: Progress,
) -> Iterator[Ends]:
    """Spreads tasks; where a process is killed, finds out in which one."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    left = dict(enumerate(tasks))
    with tempfile.TemporaryDirectory(prefix="stalesim-") as scratch:
        shared = Path(scratch) / "progress"
        watch = _Watch(shared, weights, progress)
        try:
            while left:
                try:
                    for index, ends in _parallel(left, folder, jobs, shared):
                        del left[index]
                        yield ends
                except TerminatedWorkerError:
                    begun = [index for index in left if watch.fraction(index) > 0]
                    for index in begun or list(left):
                        yield _alone(index, left.pop(index), folder, shared)
        finally:
            watch.stop()


def _parallel(
    tasks: dict[int, Task], folder: Path, jobs: int, shared: Path
) -> Iterator[tuple[int, Ends]]:
    import joblib

    parallel = joblib.Parallel(
        n_jobs=min(jobs, max(2, len(tasks))),  # one would be this very process
        backend="loky",
        return_as="generator_unordered",
        batch_size=1,  # pyright: ignore[reportArgumentType]
    )
    calls = (
        joblib.delayed(_work_elsewhere)(index, task, folder, shared)
        for index, task in list(tasks.items())
    )
    ends: Any = parallel(calls)
    yield from ends


def _alone(index: int, task: Task, folder: Path, shared: Path) -> Ends:
    """Executes a task in a process of its own; if that is killed, it was the task."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        ((_, ends),) = _parallel({index: task}, folder, 2, shared)
    except TerminatedWorkerError:
        return failed(task, folder, KILLED)
    return ends


def _work_elsewhere(
    index: int, task: Task, folder: Path, shared: Path
) -> tuple[int, Ends]:
    done = np.memmap(shared, np.float64, "r+")
    done[index] = BEGUN

    def hear(fraction: float) -> None:
        done[index] = max(fraction, BEGUN)

    ends = work(task, folder, hear)
    hear(1.0)
    return index, ends


class _Watch:
    """Tells how far other processes are, a few times a second.

    Args:
        shared: file to be made, in which the processes note their tasks' fractions.
        weights: of the tasks.
        progress: hears the fraction of all.
    """

    def __init__(self, shared: Path, weights: np.ndarray, progress: Progress) -> None:
        self._over = threading.Event()
        self._done: np.ndarray | None = np.memmap(
            shared, np.float64, "w+", shape=weights.shape
        )
        self._thread = threading.Thread(
            target=self._watch, args=(weights, progress), daemon=True
        )
        self._thread.start()

    def _watch(self, weights: np.ndarray, progress: Progress) -> None:
        while not self._over.wait(0.2) and self._done is not None:
            progress(float(self._done @ weights))

    def fraction(self, index: int) -> float:
        """Returns how much of a task is done; above zero if it has begun."""
        return 0.0 if self._done is None else float(self._done[index])

    def stop(self) -> None:
        """Stops watching and lets go of the file, so that its folder can be removed."""
        self._over.set()
        self._thread.join()
        self._done = None


def _on_cluster(
    tasks: list[Task],
    folder: Path,
    scheduler: str,
    weights: np.ndarray,
    progress: Progress,
) -> Iterator[Ends]:
    """Spreads tasks over the workers of a Dask cluster, which share the folder.

    Raises:
        UserError: Dask is not installed, the scheduler cannot be reached, has no
            workers, or they do not see the folder.
    """
    try:
        from distributed import Client, as_completed
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise UserError(
            '--scheduler needs Dask; install it: pip install "stalesim[dask]"'
        ) from None
    try:
        client = Client(scheduler, timeout=CONNECT_S)
    except (OSError, TimeoutError, ValueError) as error:
        raise UserError(
            f"--scheduler must be the address of a running Dask scheduler, got "
            f"{scheduler!r} ({error}); start one by `dask scheduler`"
        ) from None
    with client:
        folder = folder.resolve()
        _check_workers(client, folder, scheduler)
        futures: dict[Any, int] = {
            client.submit(work, task, folder, key=f"{folder}-{task.number}"): index
            for index, task in enumerate(tasks)
        }
        done = 0.0
        for future in as_completed(futures):
            index = futures[future]
            try:
                ends = future.result()
            except KilledWorker:
                ends = failed(tasks[index], folder, KILLED)
            done += float(weights[index])
            progress(done)
            yield ends


def _check_workers(client: Any, folder: Path, scheduler: str) -> None:
    """Refuses a cluster without workers, or whose workers have other file systems."""
    seen = client.run(Path.exists, folder / "manifest.json")
    if not seen:
        raise UserError(
            f"--scheduler must have workers, got {scheduler!r} with none; start some "
            f"by `dask worker {scheduler} --nthreads 1`"
        )
    blind = [worker for worker, sees in seen.items() if not sees]
    if blind:
        raise UserError(
            f"{folder}: must be seen by all workers, but {blind[0]} does not; choose a "
            f"folder on a file system that they share by --out"
        )
