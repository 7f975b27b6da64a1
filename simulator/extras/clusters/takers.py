"""Workers (takers): processes of any machines that share a study by its folder alone.

They claim its tasks by `claims`. Each task's results are separate files, which
`trace.load` reads together until the last worker ends the study. Workers of a Dask
cluster execute tasks in the same way (`take_one`).
"""

import time
from collections.abc import Callable
from pathlib import Path

from ...files import inputs
from ...files.study import DISK, Disk
from ...files.study.disk import BusyError, explained, locked, read_journal
from ...files.study.manifest import read_manifest
from ...files.study.study import SHARED
from ...parts.errors import StudyError
from ...scenario.scenario import Scenario
from ...scenario.tuning import refuse_untuned
from ...studies import executors, origins, planning, running, staged
from ...studies.planning import Done, Task
from ...studies.progress import Progress, StudyProgress, silent
from ...studies.study_folder import StudyFolder, refuse_others
from .claims import (
    BEAT_S,
    LEASE_S,
    LOST,
    OVER,
    Claimed,
    Claims,
    Heart,
    LostError,
    heart,
)

MOST_CLAIMS = 20
"""Claims of a task after which it counts as the reason for its workers' deaths."""


def execute(
    task: Task,
    path: Path,
    claim: Path,
    progress: executors.OnTask,
    disk: Disk,
) -> int:
    """Executes a task that is claimed, and leaves its result.

    Returns:
        Its runs; 0 if another worker had ended it before it was claimed.
    """
    if disk.exists(planning.done_of(path, task.session, task.number)):
        return 0
    mine = Claimed(disk, claim)
    if int(claim.suffix[1:]) > MOST_CLAIMS:
        found = executors.failed(task, path, executors.KILLED, mine)
    else:
        found = executors.attempt(task, path, progress, mine)
    with explained(path):
        disk.make(path / planning.LOCKS)
    executors.leave(found, task, path, mine)
    with explained(path):
        mine.remove(planning.checkpoint_of(path, task.number))
    return len(task.runs)


def take_one(task: Task, folder: Path, progress: executors.OnTask) -> Done:
    """Executes a task of a study that another process runs, as `executors.work` does.

    A cluster gives a task to another worker when it has lost the one before. That one
    may live, or be stopped: its claim goes, without which it can change nothing.

    Raises:
        StudyError: as `executors.work`, or the task was given to another worker.
    """
    origins.check_worker(task.program)
    place, name = (
        planning.claims_of(folder, task.session),
        planning.task_name(task.number),
    )
    claims = Claims(place, DISK, time.monotonic, LEASE_S)
    done = planning.done_of(folder, task.session, task.number)
    with executors.ONE_AT_A_TIME:
        while not (known := read_journal(DISK, done, {}))[0]:
            if not DISK.exists(place):
                raise executors.is_over(folder)
            with explained(folder):
                DISK.make(folder / planning.LOCKS)
                # A process of a study that was killed may still be at this task.
                with DISK.lock(folder / planning.LOCKS / name, wait=True):
                    pass
            for number, left in claims.look().get(name, {}).items():
                if not left:
                    claims.give(place / f"{name}.{number}", LOST)
            _, claim = claims.any_of([name])
            if claim is None:  # it has ended, which a file system may show later
                time.sleep(BEAT_S)
                continue
            ended = LOST
            try:
                execute(task, folder, claim, progress, DISK)
                ended = OVER
            except LostError:
                raise executors.is_over(folder) from None
            finally:
                claims.give(claim, ended)
    return Done(*known)


END = "end"
"""Name of the claim under which the study is ended, once all tasks have."""


def begin(scenario: Scenario, folder: Path, disk: Disk = DISK) -> None:
    """Plans the rest of a study, for workers; executes nothing.

    Raises:
        UserError: something in the scenario or the folder is wrong, or a process runs
            the study.
    """
    refuse_untuned(scenario)
    refuse_others(folder, disk)
    with locked(folder, disk):
        scenario = staged.continued(scenario, folder)
        running.started(scenario, folder, disk, shared=True)


def take(
    scenario: Scenario,
    path: Path,
    *,
    for_s: float | None = None,
    checkpoint_s: float | None = running.CHECKPOINT_S,
    progress: Progress = silent,
    beat_s: float = BEAT_S,
    lease_s: float = LEASE_S,
    disk: Disk = DISK,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
    beat: Heart = heart,
) -> tuple[int, bool]:
    """Executes tasks of a study, with any number of others, until nothing is left.

    The last worker ends the study. One that no process runs is first opened to workers.

    Args:
        scenario: Scenario of the study.
        path: Path of its folder.
        for_s: Seconds available. No task is claimed that would take longer, by the
            slowest that this worker has executed.
        checkpoint_s: Seconds from one keeping of a state to the next, from which
            who takes over continues; None for never.
        progress: Called with how far the session is.
        beat_s: Seconds from one beat to the next.
        lease_s: Seconds without a beat after which a claim is taken over.
        disk: Disk of the folder.
        clock: Seconds of this machine, from any start.
        wait: Function that lets a number of seconds pass.
        beat: How a claim beats.

    Returns:
        Runs that it has executed, and whether none is left that would have taken
        longer than it had.

    Raises:
        UserError: the program or a file differs from the study's, a process runs it,
            the folder cannot be written, or its tables are damaged.
    """
    start, a_run_s, runs = clock(), 0.0, 0
    while (
        session := _opened(scenario, path, beat_s, lease_s, disk, clock, wait)
    ) is not None:
        place = planning.claims_of(path, session)
        tasks = _tasks(scenario, path, disk, checkpoint_s)
        claims = Claims(place, disk, clock, lease_s)
        while _is_open(place, disk):
            left_s = float("inf") if for_s is None else for_s - (clock() - start)
            there = {*disk.names(path / planning.LOCKS)}
            left = {
                name: task
                for name, task in tasks.items()
                if planning.done_of(path, session, task.number).name not in there
            }
            fit = [n for n, task in left.items() if a_run_s * len(task.runs) < left_s]
            if left and not fit:
                return runs, False
            name, claim = claims.any_of(fit or [END])
            if claim is None:
                wait(beat_s)
                continue
            since, ended = clock(), LOST
            try:
                with beat(disk, claim, beat_s):
                    if name == END:
                        _end(path, session, claim, disk)
                    else:
                        tell = _teller(tasks, {*left}, name, progress)
                        done = execute(tasks[name], path, claim, tell, disk)
                        runs, ended = runs + done, OVER
                        a_run_s = max(a_run_s, (clock() - since) / max(done, 1))
            except (StudyError, LostError):
                if disk.exists(claim):
                    raise
                # It was taken over: this process was silent for too long.
            finally:
                claims.give(claim, ended)
    return runs, True


def _opened(
    scenario: Scenario,
    path: Path,
    beat_s: float,
    lease_s: float,
    disk: Disk,
    clock: Callable[[], float],
    wait: Callable[[float], None],
) -> int | None:
    """Returns the session in which a study is open to takers; None if it has ended."""
    start = clock()
    while True:
        manifest = read_manifest(path, disk)
        session = manifest["session"]
        mine = manifest.get(SHARED) == session
        if mine and _is_open(planning.claims_of(path, session), disk):
            return session
        if manifest["status"] == "complete":
            return None
        try:
            begin(scenario, path, disk)
        except BusyError:  # by another taker, perhaps, which opens it
            if clock() - start >= lease_s:
                raise
            wait(beat_s)


def _tasks(
    scenario: Scenario, path: Path, disk: Disk, checkpoint_s: float | None
) -> dict[str, Task]:
    entries = read_manifest(path, disk)["runs"]
    open_ = {entry["task"] for entry in entries if entry["stop"] in planning.OPEN}
    folder = StudyFolder(path, disk, look=False)
    runs = running.expand(scenario)
    folder.read(inputs.collect(run.scenario for run in runs))
    with inputs.held(folder.inputs):
        known = folder.planned(folder.numbered(runs))
        tasks = planning.roomy([task for task in known if task.number in open_])
        folder.check_versions()
    tasks = executors.in_order(running.of_session(folder, tasks, checkpoint_s))
    return {planning.task_name(task.number): task for task in tasks}


def _teller(
    tasks: dict[str, Task], left: set[str], name: str, progress: Progress
) -> executors.OnTask:
    """Returns what hears how far a task is, and tells how far the session is."""
    task, of_all = tasks[name], sum(len(each.runs) for each in tasks.values())
    ended = of_all - sum(len(tasks[each].runs) for each in left)

    def tell(fraction: float, commits: int) -> None:
        part = (ended + fraction * len(task.runs)) / of_all
        label = task.runs[0].label
        progress(StudyProgress(part, ended, of_all, label, commits))

    return tell


def _end(path: Path, session: int, claim: Path, disk: Disk) -> None:
    """Ends a session whose tasks have ended, and the study unless rows were lost."""
    folder = StudyFolder(path, Claimed(disk, claim))
    here = folder.manifest.get(SHARED) == session  # else who has ended it was killed
    lost = any(
        r["stop"] == planning.UNFINISHED["stop"] for r in folder.manifest["runs"]
    )
    if here and not lost:
        folder.end()
    over = _over(claim.parent)
    with explained(path):
        disk.rename(claim, over)  # the session is over from here on
        # Claims go before the results by which tasks are known to have ended.
        disk.remove_folder(claim.parent)
        if not (here and lost):  # else who takes next begins another session
            mine = Claimed(disk, over)
            mine.remove_folder(path / planning.CHECKPOINTS)
            mine.remove_folder(path / planning.LOCKS)
        disk.remove_folder(over)


def _is_open(claims: Path, disk: Disk) -> bool:
    return disk.exists(claims) and not disk.exists(_over(claims))


def _over(claims: Path) -> Path:
    return claims.with_name(f"{claims.name}.{OVER}")
