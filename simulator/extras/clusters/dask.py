"""The workers of a Dask cluster, in place of processes of this machine."""

import asyncio
import contextlib
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ...engine import processes
from ...files.study import DISK, StudyWarning
from ...files.study.disk import explained
from ...parts.errors import StudyError, UserError, one_line, shortened
from ...parts.extras import extra
from ...studies.executors import STARTED, OnProgress, WorkerDiedError
from ...studies.planning import Done, Task, claims_of

if TYPE_CHECKING:
    from distributed import Client, Future

REPORT_S = 1.0
"""Real seconds between a task's messages on its progress."""
CONNECT_S = 20
"""Real seconds to wait for a scheduler."""
POLL_S = 0.1
"""Real seconds between checks for ended tasks."""
RESTART_S = 5.0
"""Real seconds that a cluster may be without workers before the study warns."""
LOOK_S = 10.0
"""Real seconds between checks for workers."""


class Cluster:
    """The workers of a Dask cluster, which share the study's folder.

    They execute the runs of all studies in a `with` block:

        with Cluster("tcp://HOST:8786"):
            stalesim.simulate("my.yaml", "/shared/my-study")

    Raises:
        UserError: Dask is not installed, or the scheduler cannot be reached.
    """

    def __init__(self, scheduler: str) -> None:
        self._scheduler, self._held = scheduler, contextlib.ExitStack()

    def __enter__(self) -> Self:
        with connected(self._scheduler):
            pass  # a wrong address is refused before all else
        self._held.enter_context(processes.elsewhere(self))
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def execute(
        self, tasks: Mapping[int, Task], folder: Path, report: OnProgress
    ) -> Iterator[tuple[int, Done]]:
        """Yields the result of each task as it ends.

        Raises:
            WorkerDiedError: workers died at tasks, on as many as the scheduler tries.
            UserError: the scheduler cannot be reached or ends, or its workers do not
                see the folder or have another program.
        """
        folder, first = folder.resolve(), next(iter(tasks.values()))
        with _explained(self._scheduler), connected(self._scheduler) as client:
            from distributed import as_completed

            _await_workers(client, self._scheduler)
            _check_workers(client, folder)
            with explained(folder):
                DISK.make(claims_of(folder, first.session))

            def hear(event: tuple[float, tuple[int, float, int]]) -> None:
                _, (index, fraction, commits) = event
                report(index, max(float(fraction), STARTED), int(commits))

            topic = f"stalesim-{uuid.uuid4()}"
            client.subscribe_topic(topic, hear)
            futures: dict[Future, int] = {
                client.submit(
                    _work_on_cluster,
                    *(topic, index, task, folder),
                    # A worker that is at a task still would answer for one of its name.
                    key=f"{folder}-{task.number}-{topic}",
                ): index
                for index, task in tasks.items()
            }
            completed = as_completed(futures)
            looked = time.monotonic()
            while not completed.is_empty():
                for future in completed.next_batch(block=False):
                    yield futures[future], self._result(future, futures)
                time.sleep(POLL_S)
                if time.monotonic() - looked >= LOOK_S:
                    _await_workers(client, self._scheduler)
                    looked = time.monotonic()

    def _result(self, future: "Future", futures: Mapping["Future", int]) -> Done:
        from distributed.scheduler import KilledWorker

        try:
            return future.result()
        except KilledWorker:
            held = [index for each, index in futures.items() if each.status == "error"]
            raise WorkerDiedError(held) from None


def _work_on_cluster(topic: str, index: int, task: Task, folder: Path) -> Done:
    from distributed import get_worker

    from .takers import take_one  # the workers' part

    worker, last = get_worker(), [time.monotonic()]

    def report(fraction: float, commits: int) -> None:
        if time.monotonic() - last[0] >= REPORT_S:
            last[0] = time.monotonic()
            worker.log_event(topic, [index, fraction, commits])

    worker.log_event(topic, [index, STARTED, 0])
    return take_one(task, folder, report)


def connected(scheduler: str) -> "Client":
    """Returns a client of a Dask cluster, to be used in a `with` statement.

    Raises:
        UserError: Dask is not installed, or the scheduler cannot be reached.
    """
    distributed = extra("distributed", "dask", "stalesim cluster dask")
    try:
        # In a thread, as a notebook has a loop of its own in this one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _answers(scheduler)).result()
        return distributed.Client(scheduler, timeout=CONNECT_S)
    except Exception as error:
        why = one_line(str(error)) or f"no answer in {CONNECT_S} s"
        raise UserError(
            f"ADDRESS must be the address of a running Dask scheduler, got "
            f"{scheduler!r} ({why}); start one by `dask scheduler`"
        ) from None


async def _answers(scheduler: str) -> None:
    """Shakes hands with a scheduler.

    A client waits without end for what accepts a connection and says nothing, and what
    is left of one that could not be made may stop the next.
    """
    from distributed import Security
    from distributed.comm.core import connect

    how = Security().get_connection_args("client")
    hands = connect(scheduler, timeout=CONNECT_S, **how)
    comm = await asyncio.wait_for(hands, CONNECT_S + 1)
    await comm.close()


@contextlib.contextmanager
def _explained(scheduler: str) -> Iterator[None]:
    try:
        yield
    except (UserError, WorkerDiedError, Warning):
        raise
    except (CancelledError, OSError) as error:
        raise UserError(
            f"the scheduler must run until the study has ended, but {scheduler!r} has "
            f"gone ({type(error).__name__}); start it again with its workers, then "
            f"resume the study"
        ) from None
    except Exception as error:
        why = one_line(f"{type(error).__name__}: {error.__cause__ or error}")
        raise UserError(
            f"the scheduler must have the study's program and libraries, as its "
            f"workers must, but {scheduler!r} says {shortened(why, 200)}; install them "
            f"there, then resume the study"
        ) from error


def _await_workers(client: "Client", scheduler: str) -> None:
    with contextlib.suppress(TimeoutError):  # a nanny starts another in some seconds
        client.wait_for_workers(1, timeout=RESTART_S)
        return
    warnings.warn(
        f"{scheduler} has no workers; the study waits until one is started, by "
        f"`dask worker {scheduler} --nthreads 1`",
        StudyWarning,
        stacklevel=2,
    )
    client.wait_for_workers(1)


def _check_workers(client: Any, folder: Path) -> None:
    seen = client.run(Path.exists, folder / "manifest.json", on_error="return")
    for worker, sees in seen.items():
        if sees is False:
            raise StudyError(
                f"{folder}: must be seen by all workers, but {worker} does not; choose "
                f"a folder on a file system that they share by --out"
            )
