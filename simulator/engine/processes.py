"""Processes of this machine that execute runs: copies of one that has imported JAX.

Starting a process and importing all that runs need takes two seconds of processor time,
copying one that has done so some milliseconds. Where the system cannot copy processes,
each starts by itself. Other processes may replace those of this machine.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import device

if TYPE_CHECKING:
    from ..studies.executors import Workers

PRELOADED = "stalesim.simulator.studies.preloaded"
"""Module that imports what runs need; named, since it knows all that is above."""
IDLE_S = 300
"""Real seconds after which a process without work ends."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables by which libraries of linear algebra size their pools of threads."""

_others: "list[Workers]" = []
"""Processes that were given in place of this machine's; the last ones count."""
_main = threading.Lock()
"""Held while the module `__main__` is out of sight."""


@contextlib.contextmanager
def elsewhere(workers: "Workers") -> Iterator[None]:
    """Has other processes than this machine's execute the runs of studies within."""
    _others.append(workers)
    try:
        yield
    finally:
        _others.pop()


def others() -> "Workers | None":
    """Returns the processes that replace this machine's, if any."""
    return _others[-1] if _others else None


def begin() -> None:
    """Starts the import for runs in a separate process; does not wait for it.

    To be called as soon as it is known that there will be runs.
    """
    if _others or not _can_copy():
        return
    from multiprocessing import forkserver, resource_tracker

    # Starting it allows interruptions again, so it comes before they are held.
    resource_tracker.ensure_running()
    multiprocessing.set_forkserver_preload([PRELOADED])
    alone = {
        # The same modules as here, also where others of these names are installed.
        "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path),
        "PYTHONSAFEPATH": "1",
        # A process with threads is better not copied; each copy makes its own.
        **dict.fromkeys(THREADS, "1"),
    }
    with _environment(alone), _without_main(), _interruptions_held():
        forkserver.ensure_running()


def pool(jobs: int) -> Any:
    """Returns a pool of processes; the same as before, if nothing has changed."""
    import joblib
    from joblib.externals.loky import get_reusable_executor

    begin()
    threads = max(1, joblib.cpu_count() // jobs)
    return get_reusable_executor(
        max_workers=jobs,
        timeout=IDLE_S,
        context=_context() if _can_copy() else "loky",
        initializer=_initialise,
        initargs=(dict(os.environ), threads),
    )


def _initialise(environment: dict[str, str], threads: int) -> None:
    """Makes a new process like the one that asked for it; it ends with that one."""
    import threadpoolctl

    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    threadpoolctl.threadpool_limits(threads)
    device.use_cores(threads)


def _end_with_parent() -> None:
    """Ends this process when the one that asked for it was killed.

    It would otherwise continue its task, and then keep its memory for minutes.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _can_copy() -> bool:
    return "forkserver" in multiprocessing.get_all_start_methods()


class _Copy(ForkServerProcess):
    """A process that does not run the user's script again."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802
        with _without_main():
            return ForkServerProcess._Popen(process_obj)  # pyright: ignore


class _Context(ForkServerContext):
    Process = _Copy


@cache
def _context() -> _Context:
    return _Context()


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hides the user's script, which new processes would otherwise run again.

    It need not have a guard against that.
    """
    with _main:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = script


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _interruptions_held() -> Iterator[None]:
    """Keeps interruptions from processes that are started within: this one tells them.

    One that comes meanwhile is heard here a moment later.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
