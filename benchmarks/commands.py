"""What a command costs with all processes that it starts, and those start."""

import ctypes
import os
import resource
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ADOPT = 36
"""PR_SET_CHILD_SUBREAPER of Linux: processes that outlive their parents are ours."""


class Cost(NamedTuple):
    """Seconds of one command with all its processes."""

    wall: float
    cpu: float

    def times(self, count: float) -> "Cost":
        return Cost(self.wall * count, self.cpu * count)


def best(costs: list[Cost]) -> Cost:
    """Returns the least wall time and the least processor time."""
    return Cost(*(min(column) for column in zip(*costs, strict=True)))


def measure(
    command: list[str], log: Path, environment: Mapping[str, str] | None = None
) -> Cost:
    """Runs a command; its output goes to a file.

    The processes of a study are copies of one that outlives the command by a moment:
    it is waited for, so that what it and they have used is counted, too.

    Raises:
        SystemExit: it failed.
    """
    ctypes.CDLL(None).prctl(ADOPT, 1, 0, 0, 0)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with log.open("w") as file:
        done = subprocess.run(
            command,
            env={**os.environ, **(environment or {})},
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    wall = time.perf_counter() - started
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text()[-4000:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, used)
